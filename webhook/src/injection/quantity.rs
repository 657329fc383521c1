//! Kubernetes quantities, as far as counting whole things goes.

use serde_json::Value;

/// Whether all that users wrote is together less than `needed`; `None` if something is no quantity, which the API server
/// will say.
///
/// Source: apimachinery `resource.Quantity`: a decimal number and a suffix of powers of ten or two, or an exponent.
pub(crate) fn less_than(written: &[&Value], needed: u32) -> Option<bool> {
    let amounts: Option<Vec<f64>> = written.iter().map(|written| amount(written)).collect();
    Some(amounts?.into_iter().sum::<f64>() < f64::from(needed))
}

/// Beyond 2^53 nobody counts sub-interfaces, so floats are exact enough.
fn amount(written: &Value) -> Option<f64> {
    let text = match written {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let digits = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(digits)?;
    Some(number.parse::<f64>().ok()? * scale(suffix)?)
}

fn scale(suffix: &str) -> Option<f64> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let power = |base: f64, exponent: usize| i32::try_from(exponent).ok().map(|exponent| base.powi(exponent));
    if let Some(n) = BINARY.iter().position(|name| *name == suffix) {
        return power(1024.0, n + 1);
    }
    match suffix {
        "" => Some(1.0),
        "n" => Some(1e-9),
        "u" => Some(1e-6),
        "m" => Some(1e-3),
        "k" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        "T" => Some(1e12),
        "P" => Some(1e15),
        "E" => Some(1e18),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some(10_f64.powi(exponent.clamp(-400, 400)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn quantities_in_every_spelling() {
        for (written, needed, less) in [
            (json!("1"), 1, Some(false)),
            (json!("1"), 2, Some(true)),
            (json!(2), 2, Some(false)),
            (json!("0"), 1, Some(true)),
            (json!("10k"), 10_000, Some(false)),
            (json!("1Ki"), 1025, Some(true)),
            (json!("1e3"), 1000, Some(false)),
            (json!("2000m"), 2, Some(false)),
            (json!("-1"), 1, Some(true)),
            (json!("+3"), 3, Some(false)),
            (json!("many"), 1, None),
            (json!(null), 1, None),
            (json!("1x"), 1, None),
        ] {
            assert_eq!(less_than(&[&written], needed), less, "{written} {needed}");
        }
    }

    proptest! {
        #[test]
        fn whole_numbers_compare_as_numbers(written in 0_u32.., needed in 0_u32..) {
            prop_assert_eq!(less_than(&[&json!(written.to_string())], needed), Some(written < needed));
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,12}") {
            let _ = less_than(&[&json!(text)], 1);
        }
    }
}
