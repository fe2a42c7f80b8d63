//! The legate command.
fn main() {}
