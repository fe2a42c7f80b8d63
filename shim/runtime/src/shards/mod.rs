//! Many shards: who runs which rows, where values live, and what goes from shard to shard.
//!
//! A group runs in three steps: its share is decided and what its rows read is exchanged (`share`), this shard's rows are run
//! (`executor`), and the layouts are brought up to date (`layout`). Joined sweeps have one exchange for all (`deep`). Planning is arithmetic
//! on homes and cuts (`home`) and on the bytes that walks touch (`runs`); `moves` and `collective` carry bytes. Where values say what is needed, the task
//! itself asks for it (`exchange`). By option, maps are cut into blocks of two axes instead of rows (`blocks`, `rectangles`). Whether
//! arrays of a size are worth sharing out, `balance` learns. Nothing here knows what is computed.

pub(crate) mod balance;
mod blocks;
pub(crate) mod chain;
pub(crate) mod collective;
pub(crate) mod deep;
pub(crate) mod exchange;
mod home;
pub(crate) mod layout;
pub(crate) mod moves;
pub(crate) mod parts;
pub(crate) mod rectangles;
pub(crate) mod runs;
pub(crate) mod share;
mod walk;

pub use exchange::{Division, Exchange};
pub use moves::Traffic;
