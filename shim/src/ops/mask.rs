//! Boolean masks: elements picked by a mask of the array's own shape, and assignment to them.
//!
//! Reading `a[mask]` needs the number of set elements, so it waits for the mask (not for `a`); the elements are then
//! gathered as one launch, each task at the sum of the counts before it. Assigning one value is an ordinary masked copy,
//! which fuses; assigning an array spreads it as one launch. Masks that do not match an unbroken array go to the host.
#![expect(unsafe_code, reason = "binds the gathering kernels to addresses")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use legate_kernels::gather::{self, Strided};
use legate_kernels::scatter;
use legate_runtime::partition::Partition;
use legate_runtime::view::{Axes, View};
use legate_runtime::{Operand, Parallel, Privilege, Work};
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::array::{DeferredArray, Shape, deferred};
use crate::dtypes::Native;
use crate::events::Mood;
use crate::report::How;
use crate::state::Shim;
use crate::storage::Storage;
use crate::task::Task;
use crate::ufuncs::{self, Target};
use crate::values::{Kind, Value};

/// Elements that one task looks at: enough to outweigh its start, small enough to share out evenly.
const TASK_ELEMENTS: usize = 1 << 16;

/// An array and a mask of its shape, both unbroken and in the same order.
struct Pair {
    array: Shape,
    native: Native,
    storage: Py<Storage>,
    mask: Shape,
    mask_storage: Py<Storage>,
}

/// The pair, when both are deferred, match, and are not broken up.
fn pair<'py>(py: Python<'py>, shim: &Shim, array: &Bound<'py, DeferredArray>, key: &Bound<'py, PyAny>) -> Option<Pair> {
    let mask = deferred(key)?;
    let (own, picks) = (array.get().describe(py), mask.get().describe(py));
    let native = shim.dtypes.at(own.descr)?;
    let matches = shim.dtypes.at(picks.descr).is_some_and(|native| native.letter == b'?')
        && own.shape == picks.shape
        && own.size() > 0
        && own.is_c_contiguous()
        && picks.is_c_contiguous();
    matches.then(|| Pair {
        array: own,
        native,
        storage: array.get().storage(py),
        mask: picks,
        mask_storage: mask.get().storage(py),
    })
}

/// An operand that a launch touches over `bytes` bytes.
fn whole(storage: &Py<Storage>, offset: isize, bytes: usize, privilege: Privilege) -> Operand {
    let view = View { offset, strides: smallvec![0], item_bytes: bytes };
    Operand { field: storage.get().field().clone(), view, privilege }
}

/// How many elements are set in each stretch of the mask; waits for the mask.
fn counts(py: Python<'_>, shim: &Shim, pair: &Pair) -> PyResult<(Partition, Vec<usize>)> {
    let field = pair.mask_storage.get().field();
    let size = pair.mask.size();
    let start = pair.mask.offset as usize;
    if shim.shards > 1 {
        crate::storage::bring(py, shim, field, &(start..start + size))?;
    } else {
        shim.wait(py, field.last_write())?;
    }
    let address = field.materialize() + start;
    let partition = Partition::natural(size, size.div_ceil(TASK_ELEMENTS), 1);
    let found: Vec<AtomicUsize> = (0..partition.colours).map(|_| AtomicUsize::new(0)).collect();
    py.detach(|| {
        shim.runtime.workers().each(partition.colours, &|colour| {
            let tile = partition.tile(colour);
            let mask = Strided { address: (address + tile.start) as *mut u8, stride: 1 };
            // SAFETY: the mask is an unbroken stretch of `size` bytes inside its field, and is done.
            let set = unsafe { gather::count_set(mask, tile.len()) };
            found[colour].store(set, Ordering::Relaxed);
        });
    });
    Ok((partition, found.into_iter().map(AtomicUsize::into_inner).collect()))
}

/// For each stretch, the number of set elements before it, and the number of all.
fn places(counts: &[usize]) -> (Vec<usize>, usize) {
    let mut before = Vec::with_capacity(counts.len());
    let mut total = 0;
    for count in counts {
        before.push(total);
        total += count;
    }
    (before, total)
}

/// `array[mask]`; `None` when it is for the host.
pub(crate) fn get<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(pair) = pair(py, shim, array, key) else { return Ok(None) };
    let (partition, counts) = counts(py, shim, &pair)?;
    let (before, total) = places(&counts);
    if total < shim.settings.min_chunk {
        return Ok(None);
    }
    let bytes = pair.native.item_bytes;
    let strides: Axes<isize> = smallvec![bytes as isize];
    let target = ufuncs::fresh(py, shim, &[total], &strides, pair.native)?;
    let operands: SmallVec<[Operand; 4]> = smallvec![
        whole(&target.array.get().storage(py), 0, total * bytes, Privilege::Write),
        whole(&pair.storage, pair.array.offset, pair.array.size() * bytes, Privilege::Read),
        whole(&pair.mask_storage, pair.mask.offset, pair.mask.size(), Privilege::Read),
    ];
    let (offset, mask_offset) = (pair.array.offset as usize, pair.mask.offset as usize);
    let task = move |addresses: &[usize], workers: &dyn Parallel| {
        workers.each(partition.colours, &|colour| {
            let tile = partition.tile(colour);
            let at = |address: usize, stride: usize| Strided { address: address as *mut u8, stride: stride as isize };
            // SAFETY: the stretch lies inside the unbroken mask and array; the output has room for all set elements, and
            // stretches write disjoint parts of it, each as many elements as were counted.
            unsafe {
                gather::compress(
                    at(addresses[2] + mask_offset + tile.start, 1),
                    at(addresses[1] + offset + tile.start * bytes, bytes),
                    tile.len(),
                    at(addresses[0] + before[colour] * bytes, bytes),
                    bytes,
                );
            }
        });
    };
    issue(py, shim, "compress", &[total], operands, task)?;
    Ok(Some(target.array.into_any()))
}

/// `array[mask] = value`; `false` when it is for the host.
pub(crate) fn set<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    let Some(pair) = pair(py, shim, array, key) else { return Ok(false) };
    let mood = shim.origins.mood(py)?;
    if mood == Mood::Host || !pair.array.is_writeable() || pair.storage.is(&pair.mask_storage) {
        return Ok(false);
    }
    let Some((kind, taken)) = Value::of(shim, value)? else { return Ok(false) };
    let (taken, from) = match (kind, taken) {
        (Kind::Int | Kind::Float | Kind::Complex, Value::Weak(number)) => {
            let element = ufuncs::weak_element(shim, &number, pair.native)?;
            (Value::Constant { element, native: pair.native, axes: 0 }, pair.native)
        }
        (Kind::Strong(address), taken) => match shim.dtypes.at(address) {
            Some(from) => (taken, from),
            None => return Ok(false),
        },
        (Kind::Int | Kind::Float | Kind::Complex, _) => return Ok(false),
    };
    if from.kind == b'c' && pair.native.kind != b'c' {
        return Ok(false);
    }
    if let Value::Constant { axes: 0, .. } = taken {
        let target = Target { array: array.clone(), shape: pair.array.clone(), native: pair.native };
        let shape = pair.array.shape.clone();
        let Some(mask) = deferred(key).and_then(|mask| Value::of_deferred(py, shim, mask)) else { return Ok(false) };
        return ufuncs::copy(py, shim, taken, from, target, shape, Some(mask.1), mood);
    }
    spread(py, shim, &pair, &taken, from)
}

/// Spreads a one-dimensional array over the set elements.
fn spread(py: Python<'_>, shim: &Shim, pair: &Pair, value: &Value<'_>, from: Native) -> PyResult<bool> {
    let Value::Array { storage, shape, lent: false, .. } = value else { return Ok(false) };
    if shape.shape.len() != 1 || from.letter != pair.native.letter || storage.is(&pair.storage) {
        return Ok(false);
    }
    let (partition, counts) = counts(py, shim, pair)?;
    let (before, total) = places(&counts);
    if total != shape.shape[0] {
        return Ok(false);
    }
    let bytes = pair.native.item_bytes;
    let line = View { offset: shape.offset, strides: smallvec![shape.strides[0]], item_bytes: bytes };
    let operands: SmallVec<[Operand; 4]> = smallvec![
        whole(&pair.storage, pair.array.offset, pair.array.size() * bytes, Privilege::ReadWrite),
        Operand { field: storage.get().field().clone(), view: line, privilege: Privilege::Read },
        whole(&pair.mask_storage, pair.mask.offset, pair.mask.size(), Privilege::Read),
    ];
    let (offset, mask_offset) = (pair.array.offset as usize, pair.mask.offset as usize);
    let (start, stride) = (shape.offset, shape.strides[0]);
    let task = move |addresses: &[usize], workers: &dyn Parallel| {
        workers.each(partition.colours, &|colour| {
            let tile = partition.tile(colour);
            let at = |address: usize, stride: isize| Strided { address: address as *mut u8, stride };
            let first = addresses[1].wrapping_add_signed(start + before[colour] as isize * stride);
            // SAFETY: as in `get`; stretches write disjoint parts of the array, and the values are another field's.
            unsafe {
                scatter::expand(
                    at(addresses[2] + mask_offset + tile.start, 1),
                    at(addresses[0] + offset + tile.start * bytes, bytes as isize),
                    tile.len(),
                    at(first, stride),
                    bytes,
                );
            }
        });
    };
    issue(py, shim, "expand", &[total], operands, task)?;
    Ok(true)
}

/// Issues a launch that runs in its own way.
fn issue(
    py: Python<'_>,
    shim: &Shim,
    name: &'static str,
    domain: &[usize],
    operands: SmallVec<[Operand; 4]>,
    task: impl Fn(&[usize], &dyn Parallel) + Send + Sync + 'static,
) -> PyResult<()> {
    let domain: Axes<usize> = domain.iter().copied().collect();
    crate::shards::check_thread()?;
    let issued = shim.runtime.launch(name.into(), Work::Whole, domain, operands, Task::Whole(Arc::new(task)));
    if shim.settings.report {
        shim.report.lock().note(py, name, How::Native, 0, 0.0);
    }
    shim.settle(py, issued, false)
}
