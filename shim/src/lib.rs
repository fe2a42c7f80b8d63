//! The extension module `legate._core`: NumPy's types, views and rules over the task runtime.
//!
//! A deferred array (`array`) is a handle on a view of a field. Operators (`operators`, `ufuncs`), indexing (`index`),
//! reductions and creation (`ops`) check, infer and append a launch; `lower` turns fused launches into block programs;
//! `host` runs whatever has no launch on the host NumPy. The Python side (`site-packages/legate`) decides which functions
//! user code sees.

mod array;
mod blas;
mod convert;
mod dtypes;
mod ending;
mod events;
mod flat;
mod folds;
mod frames;
mod freeze;
mod future;
mod hook;
mod host;
mod index;
mod intercept;
mod kept;
mod lower;
mod mapped;
mod matrix;
mod memory;
mod methods;
mod module;
mod numpy_api;
mod operators;
mod ops;
mod place;
mod prompt;
mod protocols;
mod recycle;
mod report;
mod resident;
mod rounds;
mod scan;
mod selection;
mod settings;
mod shards;
mod slots;
mod state;
mod storage;
mod task;
mod ufuncs;
mod values;
