//! Reads what an executable asks of the dynamic loader: the libraries it needs and where it looks for them.
//!
//! Promises to read only the few pages it needs, and an error for anything that is not a 64-bit little-endian ELF
//! file. It does not search for libraries.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An executable's dynamic section.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Dynamic {
    /// Names of the libraries it needs (DT_NEEDED).
    pub(crate) needed: Vec<String>,
    /// Folders it names for them (DT_RUNPATH, else DT_RPATH), `$ORIGIN` replaced.
    pub(crate) folders: Vec<PathBuf>,
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// Tables larger than this are not an interpreter's.
const LARGEST_TABLE: u64 = 16 << 20;

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    bytes: u64,
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn number(bytes: &[u8], at: usize, width: usize) -> io::Result<u64> {
    let slice = bytes.get(at..at + width).ok_or_else(|| malformed("it ends early"))?;
    Ok(slice.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

fn read_at(file: &mut File, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
    if bytes > LARGEST_TABLE {
        return Err(malformed("a table of it is too large"));
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut table = Vec::new();
    file.take(bytes).read_to_end(&mut table)?;
    if (table.len() as u64) < bytes { Err(malformed("it ends early")) } else { Ok(table) }
}

impl Dynamic {
    /// Reads the dynamic section of the file; an executable without one needs nothing.
    pub(crate) fn read(path: &Path) -> io::Result<Dynamic> {
        let mut file = File::open(path)?;
        let header = read_at(&mut file, 0, 64)?;
        if header[..6] != *b"\x7fELF\x02\x01" {
            return Err(malformed("not a 64-bit little-endian ELF file"));
        }
        let (size, count) = (number(&header, 54, 2)?, number(&header, 56, 2)?);
        let table = read_at(&mut file, number(&header, 32, 8)?, size * count)?;
        let segments = (0..count as usize)
            .map(|row| {
                let at = row * size as usize;
                Ok(Segment {
                    kind: number(&table, at, 4)? as u32,
                    offset: number(&table, at + 8, 8)?,
                    address: number(&table, at + 16, 8)?,
                    bytes: number(&table, at + 32, 8)?,
                })
            })
            .collect::<io::Result<Vec<_>>>()?;
        let Some(dynamic) = segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
            return Ok(Dynamic::default());
        };
        let entries = read_at(&mut file, dynamic.offset, dynamic.bytes)?;
        let entries = (0..entries.len() / 16)
            .map(|row| Ok((number(&entries, row * 16, 8)?, number(&entries, row * 16 + 8, 8)?)))
            .collect::<io::Result<Vec<_>>>()?;
        let value = |tag| entries.iter().find(|entry| entry.0 == tag).map(|entry| entry.1);
        let (Some(address), Some(bytes)) = (value(DT_STRTAB), value(DT_STRSZ)) else {
            return Ok(Dynamic::default());
        };
        let strings = segments
            .iter()
            .find(|part| part.kind == PT_LOAD && (part.address..part.address + part.bytes).contains(&address))
            .ok_or_else(|| malformed("its strings are not in it"))?;
        let strings = read_at(&mut file, address - strings.address + strings.offset, bytes)?;
        let text = |at: u64| {
            let rest = strings.get(at as usize..)?;
            let end = rest.iter().position(|&byte| byte == 0)?;
            Some(String::from_utf8_lossy(&rest[..end]).into_owned())
        };
        let needed = entries.iter().filter(|entry| entry.0 == DT_NEEDED).filter_map(|entry| text(entry.1)).collect();
        let search = value(DT_RUNPATH).or_else(|| value(DT_RPATH)).and_then(text).unwrap_or_default();
        let origin = path.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
        let folders = search
            .split(':')
            .filter(|folder| !folder.is_empty())
            .map(|folder| folder.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin).into())
            .collect();
        Ok(Dynamic { needed, folders })
    }
}

#[cfg(test)]
mod tests {
    use super::Dynamic;
    use std::path::Path;

    #[test]
    fn this_test_needs_the_c_library() {
        let own = std::env::current_exe().expect("a path");
        let dynamic = Dynamic::read(&own).expect("an ELF file");
        assert!(dynamic.needed.iter().any(|name| name.starts_with("libc.")), "{dynamic:?}");
    }

    #[test]
    fn other_files_are_refused() {
        assert!(Dynamic::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))).is_err());
        assert!(Dynamic::read(Path::new("/dev/null")).is_err());
        assert!(Dynamic::read(Path::new("/no/such/file")).is_err());
    }
}
