//! Amounts of memory as people write and read them: `1.5G`, `8GiB`, `4 GB`.
//!
//! Does not know how much there is.

/// Bytes of a MiB.
pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// Units by their letters in lower case: single letters and `..iB` count in 1024, `..B` in 1000.
const UNITS: &[(&str, f64)] = &[
    ("b", 1.0),
    ("k", 1024.0),
    ("ki", 1024.0),
    ("kib", 1024.0),
    ("kb", 1e3),
    ("m", MIB),
    ("mi", MIB),
    ("mib", MIB),
    ("mb", 1e6),
    ("g", 1024.0 * MIB),
    ("gi", 1024.0 * MIB),
    ("gib", 1024.0 * MIB),
    ("gb", 1e9),
    ("t", MIB * MIB),
    ("ti", MIB * MIB),
    ("tib", MIB * MIB),
    ("tb", 1e12),
];

/// An amount of memory; a number without a unit counts in `plain_unit` bytes.
pub(crate) fn bytes(text: &str, plain_unit: f64) -> Result<u64, String> {
    let refuse = || format!("'{text}' is not a size: write 512M, 1.5G, 8GiB, or a plain number");
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| refuse())?;
    let unit = unit.trim().to_ascii_lowercase();
    let scale = if unit.is_empty() {
        plain_unit
    } else {
        UNITS.iter().find(|row| row.0 == unit).map(|row| row.1).ok_or_else(refuse)?
    };
    let amount = (number * scale).floor();
    if amount < 1.0 || amount >= u64::MAX as f64 { Err(refuse()) } else { Ok(amount as u64) }
}

/// An amount of memory for people: `1.5 GiB`.
pub(crate) fn show_bytes(amount: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|unit| amount >> unit.1 > 0) {
        Some((unit, shift)) => {
            let text = format!("{:.1}", amount as f64 / (1_u64 << shift) as f64);
            format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
        }
        None => format!("{amount} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, show_bytes};

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("1", 1 << 20),
            ("1b", 1),
            ("4k", 4096),
            ("4KB", 4000),
            ("1.5G", 3 << 29),
            ("2 GiB", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(bytes(text, 1024.0 * 1024.0), Ok(expected), "{text}");
        }
        assert_eq!(bytes("4096", 1.0), Ok(4096));
        for text in ["", "G", "-1", "1..5", "1q", "0", "1e9", "99999999999T"] {
            assert!(bytes(text, 1.0).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_for_people() {
        assert_eq!(show_bytes(5), "5 B");
        assert_eq!(show_bytes(3 << 29), "1.5 GiB");
        assert_eq!(show_bytes(8 << 30), "8 GiB");
    }
}
