//! Launches whose tasks look for elements wherever they live: how they are issued, and what their operands are.

use std::ops::Range;
use std::sync::Arc;

use legate_kernels::gather::Strided;
use legate_runtime::transport::TransportError;
use legate_runtime::view::{Axes, View};
use legate_runtime::{Exchange, Operand, Privilege, Sequence, Work};
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::report::How;
use crate::state::Shim;
use crate::storage::Storage;
use crate::task::{ExchangeTask, Task};

/// Elements at equal distances.
pub(super) fn at(address: usize, stride: usize) -> Strided {
    Strided { address: address as *mut u8, stride: stride as isize }
}

/// An operand of a launch over two axes of which it may touch any of `bytes` bytes.
pub(super) fn stretch(storage: &Py<Storage>, offset: isize, bytes: usize, privilege: Privilege) -> Operand {
    let view = View { offset, strides: smallvec![0, 0], item_bytes: bytes };
    Operand { field: storage.get().field().clone(), view, privilege }
}

/// An operand of a launch over two axes: unbroken rows of `row_bytes` bytes.
pub(super) fn rows(
    storage: &Py<Storage>,
    offset: isize,
    row_bytes: usize,
    item_bytes: usize,
    privilege: Privilege,
) -> Operand {
    let view = View { offset, strides: smallvec![row_bytes as isize, item_bytes as isize], item_bytes };
    Operand { field: storage.get().field().clone(), view, privilege }
}

/// An operand of a launch over two axes: one element of `bytes` bytes for each row, unbroken.
pub(super) fn column(storage: &Py<Storage>, offset: isize, bytes: usize, privilege: Privilege) -> Operand {
    let view = View { offset, strides: smallvec![bytes as isize, 0], item_bytes: bytes };
    Operand { field: storage.get().field().clone(), view, privilege }
}

/// Issues a launch whose first `along` operands are walked by rows, and of which another one may be written in elements of `unit`
/// bytes; its number.
pub(super) fn issue(
    py: Python<'_>,
    shim: &Shim,
    name: &str,
    (along, unit): (usize, usize),
    domain: Axes<usize>,
    operands: SmallVec<[Operand; 4]>,
    task: impl Fn(&[usize], &Exchange<'_>) -> Result<(), TransportError> + Send + Sync + 'static,
) -> PyResult<Sequence> {
    crate::shards::check_thread()?;
    crate::selection::before_writing(py, shim, &operands)?;
    let task: ExchangeTask = Arc::new(task);
    let work = Work::Exchange { along, unit };
    let issued = shim.runtime.launch(name.into(), work, domain, operands, Task::Exchange(task));
    if shim.settings.report {
        shim.report.lock().note(py, name, How::Native, 0, 0.0);
    }
    shim.settle(py, issued, false)?;
    Ok(issued.sequence)
}

/// The bytes that are in both ranges, if there are any.
pub(super) fn intersection(one: &Range<usize>, other: &Range<usize>) -> Option<Range<usize>> {
    let both = one.start.max(other.start)..one.end.min(other.end);
    (both.start < both.end).then_some(both)
}

/// The parts of a range of the first spread operand's bytes that live at other shards.
pub(super) fn parts_of(bytes: &Range<usize>, exchange: &Exchange<'_>) -> Vec<(usize, Range<usize>)> {
    let owners = exchange.owners(0, bytes).filter(|shard| *shard != exchange.shard());
    owners.filter_map(|shard| Some((shard, intersection(bytes, &exchange.part(0, shard))?))).collect()
}
