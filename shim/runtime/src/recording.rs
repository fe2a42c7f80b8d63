//! Recordings: launches as text, window by window, so that they can be planned again without the program.
//!
//! One line for each launch, `name work domain`, then one for each operand: `<`, `>` or `<>` (read, written, both), the field with `!`
//! when the program holds it, its bytes, then item bytes, offset and strides of the view. Says nothing of what is computed.

use std::fmt::Write;

use crate::launch::{Launch, Privilege};

fn list<T: ToString>(values: &[T]) -> String {
    if values.is_empty() { "-".to_owned() } else { values.iter().map(T::to_string).collect::<Vec<_>>().join(",") }
}

/// Appends a window.
pub(crate) fn write<T>(launches: &[Launch<T>], text: &mut String) {
    text.push_str("window\n");
    for launch in launches {
        let work = format!("{:?}", launch.work).replace(' ', "");
        // Writing to a text does not fail.
        let _ = writeln!(text, "{} {work} {}", launch.name.replace(' ', "_"), list(&launch.domain));
        for operand in &launch.operands {
            let sign = match operand.privilege {
                Privilege::Read => "<",
                Privilege::Write => ">",
                Privilege::ReadWrite => "<>",
            };
            let field = &operand.field;
            let held = if field.is_held() { "!" } else { "" };
            let view = &operand.view;
            let (item, offset, strides) = (view.item_bytes, view.offset, list(&view.strides));
            let _ = writeln!(text, "{sign} {}{held} {} {item} {offset} {strides}", field.number(), field.bytes());
        }
    }
}
