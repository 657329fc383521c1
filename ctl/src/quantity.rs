//! Counts of extended resources: whole numbers, as the API server writes them (`10k`).

/// Largest suffix first that a count can have; what is no count is none.
pub(crate) fn count(text: &str) -> Option<u64> {
    const SCALES: [(&str, u64); 12] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("Ei", 1 << 60),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("E", 1_000_000_000_000_000_000),
    ];
    let scaled = SCALES.iter().find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, *scale)));
    let (digits, scale) = scaled.unwrap_or((text, 1));
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn counts_are_read() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("256", Some(256)),
            ("10k", Some(10_000)),
            ("2Ki", Some(2048)),
            ("", None),
            ("k", None),
            ("1.5", None),
            ("-1", None),
            ("99999999999999999999", None),
            ("20E", None),
        ] {
            assert_eq!(count(text), wanted, "{text:?}");
        }
    }
}
