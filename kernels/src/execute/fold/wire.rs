//! Parts of totals as bytes, for shards in other processes.
//!
//! Promises that what is read is what was written, on machines of one kind: numbers travel as they are in memory. How long a
//! part can be follows from the total's type and number of elements.

use super::Rule;
use super::rule::{element_as, element_of};
use super::total::{Part, Sums};
use crate::pairwise::{Half, Pair, Piece, Summand, piece_limits};
use crate::program::{Element, Float};

/// Bytes of a number or a length.
const WORD: usize = 8;
/// Bytes of an element.
const ELEMENT: usize = 32;

/// Most bytes that a part of a total over `elements` elements takes.
pub(in crate::execute) fn limit(rule: &Rule, elements: usize) -> usize {
    match rule {
        Rule::Pairwise(Float::F16) => sums_limit::<Half>(elements),
        Rule::Pairwise(Float::F32) => sums_limit::<f32>(elements),
        Rule::Pairwise(Float::F64) => sums_limit::<f64>(elements),
        Rule::Pairwise(Float::C64) => sums_limit::<Pair<f32>>(elements),
        Rule::Pairwise(Float::C128) => sums_limit::<Pair<f64>>(elements),
        Rule::Fold(_) | Rule::Count(_) => 1 + ELEMENT,
        Rule::ArgExtreme(..) => 1 + ELEMENT + WORD,
    }
}

fn sums_limit<T: Summand>(elements: usize) -> usize {
    let (nodes, values) = piece_limits::<T>(elements);
    // Two stretches of values, one at each end.
    let pieces = nodes * (1 + WORD + size_of::<T::Sum>()) + 2 * (1 + WORD) + values * size_of::<T>();
    2 + size_of::<T>() + WORD + pieces
}

/// Writes a part.
pub(in crate::execute) fn write(part: &Part, bytes: &mut Vec<u8>) {
    match part {
        Part::Nothing => bytes.push(0),
        Part::F16(sums) => write_sums(1, sums, bytes),
        Part::F32(sums) => write_sums(2, sums, bytes),
        Part::F64(sums) => write_sums(3, sums, bytes),
        Part::C64(sums) => write_sums(4, sums, bytes),
        Part::C128(sums) => write_sums(5, sums, bytes),
        Part::Folded(element) => {
            bytes.push(6);
            bytes.extend(element.0);
        }
        Part::Best(element, index) => {
            bytes.push(7);
            bytes.extend(element.0);
            write_word(*index, bytes);
        }
    }
}

/// Reads a part that [`write()`] wrote, and moves on behind it.
pub(in crate::execute) fn read(bytes: &mut &[u8]) -> Part {
    match take(bytes, 1)[0] {
        1 => Part::F16(read_sums(bytes)),
        2 => Part::F32(read_sums(bytes)),
        3 => Part::F64(read_sums(bytes)),
        4 => Part::C64(read_sums(bytes)),
        5 => Part::C128(read_sums(bytes)),
        6 => Part::Folded(read_value(bytes, ELEMENT)),
        7 => Part::Best(read_value(bytes, ELEMENT), read_word(bytes)),
        _ => Part::Nothing,
    }
}

fn write_sums<T: Summand>(tag: u8, sums: &Sums<T>, bytes: &mut Vec<u8>) {
    bytes.push(tag);
    bytes.push(u8::from(sums.first.is_some()));
    if let Some(first) = sums.first {
        write_value(first, bytes);
    }
    write_word(sums.pieces.len(), bytes);
    for piece in &sums.pieces {
        match piece {
            Piece::Node(count, sum) => {
                bytes.push(1);
                write_word(*count, bytes);
                write_value(*sum, bytes);
            }
            Piece::Values(values) => {
                bytes.push(0);
                write_word(values.len(), bytes);
                for value in values {
                    write_value(*value, bytes);
                }
            }
        }
    }
}

fn read_sums<T: Summand>(bytes: &mut &[u8]) -> Sums<T> {
    let has_first = take(bytes, 1)[0] == 1;
    let first = has_first.then(|| element_as(&read_value(bytes, size_of::<T>())));
    let count = read_word(bytes);
    let pieces = (0..count).map(|_| {
        let is_node = take(bytes, 1)[0] == 1;
        let count = read_word(bytes);
        match is_node {
            true => Piece::Node(count, element_as(&read_value(bytes, size_of::<T::Sum>()))),
            false => Piece::Values((0..count).map(|_| element_as(&read_value(bytes, size_of::<T>()))).collect()),
        }
    });
    Sums { first, pieces: pieces.collect() }
}

fn write_value<T: Copy>(value: T, bytes: &mut Vec<u8>) {
    bytes.extend(&element_of(value).0[..size_of::<T>()]);
}

fn read_value(bytes: &mut &[u8], size: usize) -> Element {
    let mut element = Element([0; 32]);
    element.0[..size].copy_from_slice(take(bytes, size));
    element
}

fn write_word(number: usize, bytes: &mut Vec<u8>) {
    bytes.extend((number as u64).to_le_bytes());
}

fn read_word(bytes: &mut &[u8]) -> usize {
    let mut word = [0; WORD];
    word.copy_from_slice(take(bytes, WORD));
    u64::from_le_bytes(word) as usize
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}
