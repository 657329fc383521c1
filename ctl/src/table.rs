//! Columns for people.

use crate::plain::plain;

/// Between two columns.
const GAP: usize = 3;

/// Rows under headers, each cell as wide as the widest of its column. A wide character counts as one: names are ASCII.
pub(crate) fn table<const N: usize>(headers: [&str; N], rows: &[[String; N]]) -> String {
    let cells = |row: [&str; N]| row.map(|cell| plain(cell).into_owned());
    let mut all = vec![cells(headers)];
    all.extend(rows.iter().map(|row| cells(row.each_ref().map(String::as_str))));
    let width = |column: usize| all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or_default() + GAP);
    let line = |row: &[String; N]| {
        let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", padded.collect::<String>().trim_end())
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_where_their_text_does() {
        let rows = [["a".to_owned(), String::new()], ["long-name".to_owned(), "x\ny".to_owned()]];
        assert_eq!(table(["NAME", "WHY"], &rows), "NAME        WHY\na\nlong-name   x\\ny\n");
    }
}
