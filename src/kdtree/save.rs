//! Writing a tree.

use super::arena::View;
use super::file::{ALIGNMENT, Section, Shape};
use crate::element::Element;
use crate::error::Result;
use crate::file::{self, checksum, io_error};
use crc32fast::Hasher;
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

/// Turns numbers of `unit` bytes around where this machine has their bytes the other way than files.
pub(super) fn swap(bytes: &mut [u8], unit: usize) {
    bytes.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
}

/// The bytes of the box as a file has them.
fn box_of<T: Element>(tree: &View<'_, T>) -> Vec<T> {
    tree.torus.map_or_else(Vec::new, |torus| [&torus.origin[..], &torus.lengths].concat())
}

/// Writes a tree. `name` is what errors call `to`.
pub(super) fn write<T: Element>(tree: &View<'_, T>, absent: bool, to: &mut dyn Write, name: &str) -> Result<()> {
    let (shape, torus) = (Shape::of(tree, absent), box_of(tree));
    let sections: [Cow<'_, [u8]>; 5] = Section::ALL.map(|section| {
        let mut bytes = Cow::Borrowed(match section {
            Section::Box => bytemuck::cast_slice(&torus),
            Section::Coordinates => bytemuck::cast_slice(tree.coordinates),
            Section::Rows => bytemuck::cast_slice(tree.ids),
            Section::Nodes => bytemuck::cast_slice(tree.nodes),
            Section::Boxes => bytemuck::cast_slice(tree.boxes),
        });
        if cfg!(target_endian = "big") {
            swap(bytes.to_mut(), section.unit(&shape));
        }
        bytes
    });
    let zeros = [0; ALIGNMENT as usize];
    let fill = |bytes: &[u8]| &zeros[..bytes.len().next_multiple_of(zeros.len()) - bytes.len()];
    let checksums = sections.each_ref().map(|bytes| {
        let mut hasher = Hasher::new_with_initial(checksum(bytes));
        hasher.update(fill(bytes));
        hasher.finalize()
    });
    let mut put = |bytes: &[u8]| to.write_all(bytes).map_err(|error| io_error(name, &error));
    put(&shape.header(checksums))?;
    for bytes in &sections {
        put(bytes)?;
        put(fill(bytes))?;
    }
    to.flush().map_err(|error| io_error(name, &error))
}

/// Writes a tree to a file.
pub(super) fn save<T: Element>(tree: &View<'_, T>, absent: bool, path: &Path) -> Result<()> {
    file::save(path, |file, name| write(tree, absent, file, name))
}
