//! The task runtime of one shard: fields, views, partitions, launches, window, fusion, mapper, instances, workers.
//!
//! No Python and no arithmetic: what a launch computes is a task that the [`Backend`] compiles and runs. A statement's
//! way through: [`Runtime::launch`] appends to the window; a closed window is cut into groups (`fuse`); the executor
//! gives the groups' fields their instances, cuts each group into tiles ([`partition`]) and runs them on the workers.

mod carried;
mod closed;
pub mod digest;
mod executor;
mod field;
mod fuse;
pub mod group;
mod launch;
mod mapper;
mod owed;
pub mod partition;
mod pool;
mod recording;
mod regrets;
mod reuse;
mod ring;
mod shards;
mod sweeps;
mod timeline;
pub mod transport;
pub mod view;
pub mod watch;
mod window;
mod workers;

pub use carried::Carried;
pub use executor::Counters;
pub use field::{Field, Handle, Instance, Sequence};
pub use launch::{Backend, Cut, Effort, From, Launch, Operand, Parallel, Privilege, Work};
pub use mapper::Mapper;
pub use pool::{Block, Pool};
pub use shards::{Division, Exchange, Traffic};
pub use timeline::Span;
pub use window::{Issued, Runtime, RuntimeError};
