//! Storage: the Python objects that hold fields, and real memory handed out over them.
//!
//! [`Storage`] is the base object of every phantom (see `array`): while one lives, the field has a user. [`Export`] is
//! the base object of every host alias: while a pinning one lives, the field's memory does not move and every operation
//! that touches it finishes at its line. Both are found again from any view that NumPy makes of an array over them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use legate_runtime::view::View;
use legate_runtime::{Field, Handle, Operand, Parallel, Privilege, Work};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use smallvec::smallvec;

use crate::array::{DeferredArray, PHANTOM, PHANTOM_BYTES};
use crate::numpy_api::{self, flag};
use crate::selection;
use crate::state::Shim;
use crate::task::Task;

/// A user's hold on a field, as a Python object.
#[pyclass(frozen, module = "legate._core")]
pub(crate) struct Storage {
    handle: Handle,
    /// Whether the program has had an array over the memory, through which it may have written.
    seen: AtomicBool,
}

impl Storage {
    /// The field.
    pub(crate) fn field(&self) -> &Arc<Field> {
        self.handle.field()
    }

    /// Whether values have changed by launches alone so far.
    pub(crate) fn is_unseen(&self) -> bool {
        !self.seen.load(Ordering::Relaxed)
    }
}

/// Real memory of a field, lent out: the field is pinned while this lives.
#[pyclass(frozen, module = "legate._core")]
pub(crate) struct Export {
    storage: Py<Storage>,
}

impl Drop for Export {
    fn drop(&mut self) {
        self.storage.get().field().unpin();
    }
}

/// A new phantom: an array object with a field's shape and no memory of its own; and its hold on the field.
pub(crate) fn phantom<'py>(
    handle: Handle,
    descr: &Bound<'py, PyAny>,
    shape: &[isize],
    strides: &[isize],
    offset: usize,
) -> PyResult<(Bound<'py, PyAny>, Py<Storage>)> {
    let owner = Bound::new(descr.py(), Storage { handle, seen: AtomicBool::new(false) })?;
    let phantom = numpy_api::array_over(descr, shape, strides, PHANTOM + offset, true, owner.clone().into_any())?;
    numpy_api::let_own(&phantom)?;
    Ok((phantom, owner.unbind()))
}

/// A phantom like `view`, as the owner of the field: for a fresh result that was shaped after it was made.
pub(crate) fn owner<'py>(view: &Bound<'py, PyAny>, storage: &Py<Storage>) -> PyResult<Bound<'py, PyAny>> {
    let geometry = numpy_api::geometry(view);
    let holder = storage.bind(view.py()).clone().into_any();
    let descr = numpy_api::descr(view);
    let phantom = numpy_api::array_over(&descr, geometry.shape, geometry.strides, geometry.data, true, holder)?;
    numpy_api::let_own(&phantom)?;
    Ok(phantom)
}

/// What is at the end of an array's chain of bases.
pub(crate) enum Root<'py> {
    /// A phantom's storage.
    Phantom(Bound<'py, Storage>),
    /// The storage of an alias's field.
    Alias(Bound<'py, Storage>),
    /// Nothing of ours.
    Foreign,
}

/// Follows the bases of an array (a view's base may be the array it was made from).
pub(crate) fn root<'py>(array: &Bound<'py, PyAny>) -> Root<'py> {
    let mut current = array.clone();
    loop {
        let Some(base) = numpy_api::base(&current) else { return Root::Foreign };
        if numpy_api::is_array(&base) {
            current = base;
            continue;
        }
        if let Ok(storage) = base.cast_exact::<Storage>() {
            let address = numpy_api::geometry(array).data;
            let untouched = (PHANTOM..PHANTOM + PHANTOM_BYTES).contains(&address);
            return if untouched { Root::Phantom(storage.clone()) } else { Root::Alias(storage.clone()) };
        }
        return match base.cast_exact::<Export>() {
            Ok(export) => Root::Alias(export.get().storage.bind(array.py()).clone()),
            Err(_) => Root::Foreign,
        };
    }
}

/// The deferred view of a host array whose memory is a field's, which has not moved since.
/// `base` is the array that it is a view of.
pub(crate) fn deferred_view<'py>(
    array: &Bound<'py, PyAny>,
    storage: Bound<'py, Storage>,
    base: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, DeferredArray>> {
    let origin = storage.get().field().current_address();
    DeferredArray::over(phantom_of(array, origin, &storage)?, storage.unbind(), base)
}

/// A phantom like an array over the memory of a field, which began at `origin`.
pub(crate) fn phantom_of<'py>(
    array: &Bound<'py, PyAny>,
    origin: usize,
    storage: &Bound<'py, Storage>,
) -> PyResult<Bound<'py, PyAny>> {
    let geometry = numpy_api::geometry(array);
    numpy_api::array_over(
        &numpy_api::descr(array),
        geometry.shape,
        geometry.strides,
        PHANTOM.wrapping_add(geometry.data.wrapping_sub(origin)),
        geometry.has(flag::WRITEABLE),
        storage.clone().into_any(),
    )
}

/// A phantom of one axis: `count` elements of an array's dtype in its field, from a byte offset on, `stride` bytes apart.
pub(crate) fn view_over<'py>(
    array: &Bound<'py, DeferredArray>,
    offset: isize,
    count: usize,
    stride: isize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let writeable = array.get().describe(py).is_writeable();
    let holder = array.get().storage(py).into_bound(py).into_any();
    let data = PHANTOM.wrapping_add_signed(offset);
    numpy_api::array_over(&array.get().descr(py), &[count as isize], &[stride], data, writeable, holder)
}

/// Reads of small parts of a field, one after the other, after which all of it is fetched from the other shards at once.
const SMALL_READS: u32 = 8;
/// Largest field that such reads make every shard hold.
const KEPT_BYTES: usize = 1 << 30;

/// Waits for all that was issued on a field, and has this shard hold the newest values of a range of its bytes. All of the field
/// comes when there were many reads of parts since it was written.
pub(crate) fn bring(
    py: Python<'_>,
    shim: &Shim,
    field: &Arc<Field>,
    bytes: &Range<usize>,
    purpose: Purpose,
) -> PyResult<()> {
    // Only what is done is the same on every shard.
    await_field(py, shim, field, purpose)?;
    let keeps = !shim.is_here(field, bytes) && field.count_read() > SMALL_READS && field.bytes() <= KEPT_BYTES;
    let wanted = if keeps { 0..field.bytes() } else { bytes.clone() };
    bring_part(py, shim, field, &wanted, purpose)
}

/// What memory is looked at for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To read it, and no more than that.
    Read,
    /// Whatever its holder likes.
    Any,
}

/// A task of a launch whose operands are all there is to it.
pub(crate) fn nothing() -> Task {
    Task::Whole(Arc::new(|_: &[usize], _: &dyn Parallel| ()))
}

/// Once all that was issued on a field is done: has its values stored, or launches what does; whether there is something to wait for.
pub(crate) fn settle(shim: &Shim, field: &Arc<Field>, purpose: Purpose) -> bool {
    shim.runtime.settle(field, purpose == Purpose::Any, nothing())
}

/// Waits for all that was issued on a field, and until its values are stored; other threads may issue more meanwhile.
pub(crate) fn await_field(py: Python<'_>, shim: &Shim, field: &Arc<Field>, purpose: Purpose) -> PyResult<()> {
    if purpose == Purpose::Any {
        selection::keep(py, shim, field)?;
    }
    loop {
        let touched = field.last_touch();
        shim.wait(py, touched)?;
        if field.last_touch() == touched && (field.is_settled() || !py.detach(|| settle(shim, field, purpose))) {
            return Ok(());
        }
    }
}

/// As [`bring`], and never more than the range.
fn bring_part(py: Python<'_>, shim: &Shim, field: &Arc<Field>, bytes: &Range<usize>, purpose: Purpose) -> PyResult<()> {
    loop {
        await_field(py, shim, field, purpose)?;
        if shim.is_here(field, bytes) {
            return Ok(());
        }
        if crate::shards::is_forked() {
            return Err(PyRuntimeError::new_err(
                "an array that is spread over several shards is not whole in a forked process: look at it before the fork",
            ));
        }
        let view = View { offset: bytes.start as isize, strides: smallvec![1], item_bytes: 1 };
        let operands = smallvec![Operand { field: field.clone(), view, privilege: Privilege::Read }];
        crate::shards::check_thread()?;
        shim.runtime.launch("gather".into(), Work::Whole, smallvec![bytes.len()], operands, nothing());
    }
}

/// A host array of which texts show no more than the first and last `edges` elements of each axis: only they are up to date.
pub(crate) fn edges_alias<'py>(
    py: Python<'py>,
    shim: &Shim,
    phantom: &Bound<'py, PyAny>,
    storage: &Py<Storage>,
    edges: isize,
) -> PyResult<Bound<'py, PyAny>> {
    let lengths: Vec<isize> = numpy_api::geometry(phantom).shape.to_vec();
    for corner in 0..1usize << lengths.len() {
        let slices = lengths.iter().enumerate().map(|(axis, length)| {
            let (start, stop) = if corner >> axis & 1 == 0 { (0, edges) } else { ((length - edges).max(0), *length) };
            PySlice::new(py, start, stop, 1)
        });
        let part = phantom.get_item(PyTuple::new(py, slices)?)?;
        bring_part(py, shim, storage.get().field(), &numpy_api::bytes_of(&part, PHANTOM)?, Purpose::Read)?;
    }
    over_field(py, phantom, storage, false)
}

/// A host array over the memory of a phantom's field, all of whose launches are done.
///
/// With `pinned` the memory stays where it is for as long as the array, or a view of it, lives.
pub(crate) fn alias<'py>(
    py: Python<'py>,
    shim: &Shim,
    phantom: &Bound<'py, PyAny>,
    storage: &Py<Storage>,
    pinned: bool,
    purpose: Purpose,
) -> PyResult<Bound<'py, PyAny>> {
    match shim.shards {
        // All of it is here.
        1 => await_field(py, shim, storage.get().field(), purpose)?,
        _ => bring(py, shim, storage.get().field(), &numpy_api::bytes_of(phantom, PHANTOM)?, purpose)?,
    }
    over_field(py, phantom, storage, pinned)
}

/// A host array over the memory of a phantom's field, as it is.
pub(crate) fn over_field<'py>(
    py: Python<'py>,
    phantom: &Bound<'py, PyAny>,
    storage: &Py<Storage>,
    pinned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let field = storage.get().field();
    storage.get().seen.store(true, Ordering::Relaxed);
    let owner = if pinned {
        field.pin();
        Bound::new(py, Export { storage: storage.clone_ref(py) })?.into_any()
    } else {
        storage.bind(py).clone().into_any()
    };
    let address = field.materialize();
    let geometry = numpy_api::geometry(phantom);
    let offset = geometry.data - PHANTOM;
    numpy_api::array_over(
        &numpy_api::descr(phantom),
        geometry.shape,
        geometry.strides,
        address + offset,
        geometry.has(flag::WRITEABLE),
        owner,
    )
}
