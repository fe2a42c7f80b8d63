//! Words as a shell reads them, for commands that are shown and may be pasted.
//!
//! Promises that a shell makes the very words again (bash, where a word is no text). Does not read words (see `parse`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Letters that need no quotes, besides letters and digits.
const PLAIN: &[u8] = b"_@%+=:,./-";

/// A word in quotes where it needs them.
pub(crate) fn quote(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || PLAIN.contains(byte);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.bytes().all(|byte| is_plain(&byte)) => text.to_owned(),
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        None => {
            let octal =
                |byte: &u8| if is_plain(byte) { char::from(*byte).to_string() } else { format!("\\{byte:03o}") };
            format!("$'{}'", word.as_bytes().iter().map(octal).collect::<String>())
        }
    }
}

/// A command with the variables before it.
pub(crate) fn command<'a>(
    variables: impl IntoIterator<Item = (&'static str, &'a OsStr)>,
    words: impl IntoIterator<Item = &'a OsStr>,
) -> String {
    let variables = variables.into_iter().map(|(name, value)| format!("{name}={}", quote(value)));
    let words = words.into_iter().map(quote);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{command, quote};
    use crate::parse::shell_words;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_shell_reads_the_same_words() {
        for word in ["a", "", "a b", "it's", "$x", "\"", "*", "a\nb", "--x=1", "ü"] {
            assert_eq!(shell_words(&quote(word)).expect("words"), [word], "{word}");
        }
        assert_eq!(quote("--x=a/b:c"), "--x=a/b:c");
        assert_eq!(quote(OsStr::from_bytes(b"a\xff'")), r"$'a\377\047'");
    }

    #[test]
    fn variables_come_first() {
        let words = ["run", "a b"].map(OsStr::new);
        assert_eq!(command([("X", OsStr::new("1 2"))], words), "X='1 2' run 'a b'");
    }
}
