//! The user's line for the digest of what the shards do: file and number, found cheaply and shared.
//!
//! Asked for every launch and agreement where there are several shards. Where user code is innermost, its code object and
//! instruction are looked up in a table; else the frames are walked outward. Judges nobody: `intercept` does.

use std::sync::Arc;

use legate_runtime::digest::Place;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;
use rustc_hash::FxHashMap;

use crate::{frames, intercept};

/// Most places remembered; the table is emptied when it is full.
const MOST: usize = 4096;

/// Places by the address of the code and the instruction. The code is kept alive, so that its address stays its own.
#[derive(Default)]
struct Known {
    places: FxHashMap<(usize, usize), (Py<PyAny>, Arc<Place>)>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Where the user's program is now; none outside of any.
pub(crate) fn current(py: Python<'_>) -> Option<Arc<Place>> {
    if !intercept::called_by_user(py) {
        return outward(py);
    }
    let (code, instruction) = frames::instruction(py)?;
    let key = (code.as_ptr() as usize, instruction);
    if let Some(known) = KNOWN.lock().as_ref()
        && let Some((_, place)) = known.places.get(&key)
    {
        return Some(place.clone());
    }
    let place = outward(py)?;
    let mut known = KNOWN.lock();
    let table = known.get_or_insert_default();
    let over = if table.places.len() >= MOST { std::mem::take(&mut table.places) } else { FxHashMap::default() };
    table.places.insert(key, (code.unbind(), place.clone()));
    drop(known);
    drop(over);
    Some(place)
}

/// The line of the innermost user code.
fn outward(py: Python<'_>) -> Option<Arc<Place>> {
    let frame = intercept::user_frame(py)?;
    let line = frame.getattr(pyo3::intern!(py, "f_lineno")).ok()?.extract().ok()?;
    let code = frame.getattr(pyo3::intern!(py, "f_code")).ok()?;
    let file: String = code.getattr(pyo3::intern!(py, "co_filename")).ok()?.extract().ok()?;
    Some(Arc::new(Place { file: file.into(), line }))
}
