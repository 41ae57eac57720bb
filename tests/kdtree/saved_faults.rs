//! Files that are no trees, and what is said of them.

use crate::common::cloud::Cloud;
use crate::common::random::Random;
use crate::common::saved::{HEADER, Section, assert_same_answers, seal, section, written};
use crate::common::scratch::{Scratch, opened};
use crate::common::threads;
use ndarray::Array2;
use pullback::kdtree::{KdTree, KdTreeDyn};
use pullback::{Error, FileFault, Result};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};

/// 20 points in two dimensions, with all sections.
fn small() -> KdTreeDyn<f32> {
    let points: Array2<f32> = Cloud::Uniform.points(20, 2, &mut Random::new(1));
    let builder = KdTreeDyn::<f32>::builder().leaf_size(16).periodic(&[Some(9.0), None]).origin(&[-4.0, 0.0]);
    builder.build_dyn(points.view()).unwrap()
}

fn fault<T>(result: Result<T>) -> FileFault {
    match result.err().expect("a bad file") {
        Error::File { fault, .. } => fault,
        error => panic!("{error:?}"),
    }
}

/// What all ways to open a file say is wrong with it.
fn fault_of(file: &[u8], scratch: &Scratch) -> FileFault {
    let path = scratch.path("bad");
    fs::write(&path, file).unwrap();
    let mut faults: Vec<FileFault> = opened::<f32>(&path).into_iter().map(fault).collect();
    let first = faults.pop().unwrap();
    for other in faults {
        match (&other, &first) {
            // A stream does not know its length.
            (FileFault::Truncated { expected, .. }, FileFault::Truncated { expected: same, .. }) => {
                assert_eq!(expected, same);
            }
            _ => assert_eq!(other, first),
        }
    }
    first
}

#[test]
fn every_truncation() {
    let (file, scratch) = (written(&small()), Scratch::new());
    for len in 0..file.len() {
        let expected = if len < HEADER { HEADER } else { file.len() } as u64;
        let truncated = FileFault::Truncated { found: len as u64, expected };
        assert_eq!(fault_of(&file[..len], &scratch), truncated);
        assert_eq!(fault(KdTreeDyn::<f32>::read(&file[..len])), truncated, "of a stream");
    }
}

#[test]
fn every_bit() {
    let (mut file, scratch) = (written(&small()), Scratch::new());
    for bit in 0..8 * file.len() {
        file[bit / 8] ^= 1 << (bit % 8);
        let fault = fault_of(&file, &scratch);
        match bit / 8 {
            0..8 => assert_eq!(fault, FileFault::NotATree),
            8..12 => assert!(matches!(fault, FileFault::Version { supported: 1, .. }), "{fault:?}"),
            12..HEADER => assert_eq!(fault, FileFault::Checksum { section: "header" }),
            _ => assert!(matches!(fault, FileFault::Checksum { .. }), "{fault:?}"),
        }
        file[bit / 8] ^= 1 << (bit % 8);
    }
    let path = scratch.path("good");
    fs::write(&path, &file).unwrap();
    opened::<f32>(&path).into_iter().for_each(|tree| drop(tree.unwrap()));
}

#[test]
fn other_files() {
    let scratch = Scratch::new();
    let png = b"\x89PNG\r\n\x1a\n then some";
    for file in [&b"x"[..], b"0.5,1.5\n2.5,3.5\n", png, &[0; 1000], &[0xff; 1000]] {
        assert_eq!(fault_of(file, &scratch), FileFault::NotATree);
    }
    let file = written(&small());
    for more in [1, 64, 100_000] {
        let longer = [&file[..], &vec![0; more]].concat();
        assert_eq!(fault_of(&longer, &scratch), FileFault::Trailing { expected: file.len() as u64 });
    }
    let twice = [&file[..], &file].concat();
    assert_eq!(fault_of(&twice, &scratch), FileFault::Trailing { expected: file.len() as u64 });
}

#[test]
fn other_trees() {
    let (mut file, scratch) = (written(&small()), Scratch::new());
    let path = scratch.path("tree");
    fs::write(&path, &file).unwrap();
    let element = FileFault::Element { found: "f32", expected: "f64" };
    opened::<f64>(&path).into_iter().for_each(|tree| assert_eq!(fault(tree), element));
    let dimensions = FileFault::Dimensions { found: 2, expected: 3 };
    assert_eq!(fault(KdTree::<f32, 3>::load(&path)), dimensions);
    assert_eq!(fault(KdTree::<f32, 3>::read(&file[..])), dimensions);
    #[cfg(feature = "mmap")]
    assert_eq!(fault(KdTree::<f32, 3>::map(&path)), dimensions);
    let unsupported = KdTree::<f32, 17>::load(&path).err().unwrap();
    assert_eq!(unsupported, Error::Dimensions { found: 17, most: 16 });
    let name = path.display();
    let error = KdTree::<f32, 3>::load(&path).err().unwrap();
    assert_eq!(error.to_string(), format!("{name}: 2 dimensions, expected 3"));

    file[8] = 2;
    seal(&mut file);
    assert_eq!(fault_of(&file, &scratch), FileFault::Version { found: 2, supported: 1 });
}

/// A file of right checksums.
struct Forged(Vec<u8>);

impl Forged {
    /// Overwrites some bytes of a section.
    fn put(mut self, which: Section, at: usize, bytes: &[u8]) -> Self {
        let start = section(&self.0, which).start + at;
        self.0[start..start + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn element(self, which: Section, at: usize, x: f32) -> Self {
        self.put(which, 4 * at, &x.to_le_bytes())
    }

    fn header(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// What is found to be wrong with it.
    #[track_caller]
    fn refused_for(mut self, scratch: &Scratch, word: &str) {
        seal(&mut self.0);
        match fault_of(&self.0, scratch) {
            FileFault::Structure { what } => assert!(what.contains(word), "{what}"),
            fault => panic!("{fault:?}"),
        }
    }
}

#[test]
fn right_checksums_of_wrong_structures() {
    use Section::{Box, Boxes, Coordinates, Nodes, Rows};
    let (file, scratch) = (written(&small()), Scratch::new());
    let forged = || Forged(file.clone());
    let row = |slot: usize| &file[section(&file, Rows).start + 4 * slot..][..4];
    // 16 points and 4, in leaves of 16.
    forged().put(Rows, 0, row(1)).refused_for(&scratch, "twice");
    forged().put(Rows, 0, row(16)).refused_for(&scratch, "twice");
    forged().put(Rows, 0, &20u32.to_le_bytes()).refused_for(&scratch, "row 20 of 20");
    forged().put(Rows, 4 * 19, &u32::MAX.to_le_bytes()).refused_for(&scratch, "row 4294967295 of 20");
    forged().put(Rows, 4 * 20, &7u32.to_le_bytes()).refused_for(&scratch, "not empty");
    forged().put(Nodes, 4, &[2]).refused_for(&scratch, "no axis");
    forged().put(Nodes, 4, &[255]).refused_for(&scratch, "no axis");
    forged().put(Nodes, 5, &[1]).refused_for(&scratch, "no axis");
    forged().put(Nodes, 7, &[0x80]).refused_for(&scratch, "no axis");
    for split in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 7.0, -7.0] {
        forged().element(Nodes, 0, split).refused_for(&scratch, "split of node 0");
    }
    // (leaves, axes, slots)
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 7.0, -7.0] {
        for at in [0, 15, 16, 31, 32, 35, 48, 51] {
            forged().element(Coordinates, at, x).refused_for(&scratch, "outside of its box");
        }
    }
    for x in [0.0, f32::NAN, f32::NEG_INFINITY] {
        for at in [36, 47, 63] {
            forged().element(Coordinates, at, x).refused_for(&scratch, "not empty");
        }
    }
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        forged().element(Boxes, 0, x).refused_for(&scratch, "box of leaf 0");
        forged().element(Boxes, 7, x).refused_for(&scratch, "box of leaf 1");
        forged().element(Box, 0, x).refused_for(&scratch, "origin");
    }
    // A box that its points are in, and not the split.
    forged().element(Boxes, 2, 3.0).element(Boxes, 3, 3.0).refused_for(&scratch, "split of node 0");
    forged().element(Boxes, 0, -4.5).refused_for(&scratch, "outside of the periodic box");
    forged().element(Boxes, 2, 5.0).refused_for(&scratch, "outside of the periodic box");
    for length in [0.0, -1.0, f32::NAN, f32::NEG_INFINITY] {
        forged().element(Box, 3, length).refused_for(&scratch, "length of the box");
    }
    forged().element(Box, 2, f32::INFINITY).refused_for(&scratch, "no axis of the periodic box");
    forged().put(Nodes, 8, &[1]).refused_for(&scratch, "behind the nodes");
}

#[test]
fn right_checksums_of_wrong_headers() {
    let (file, scratch) = (written(&small()), Scratch::new());
    let forged = |at: usize, bytes: &[u8]| Forged(file.clone()).header(at, bytes);
    forged(12, &[2]).refused_for(&scratch, "elements of 2 bytes");
    forged(13, &[0]).refused_for(&scratch, "0 dimensions");
    forged(13, &[17]).refused_for(&scratch, "17 dimensions");
    for leaf in [0, 8, 17, 48, 1 << 21, u64::MAX] {
        forged(16, &leaf.to_le_bytes()).refused_for(&scratch, "leaves of");
    }
    for (rows, points) in [(19, 20), (21, 20), (u64::from(u32::MAX), 20), (u64::MAX, u64::MAX), (20, 21)] {
        forged(24, &[rows.to_le_bytes(), points.to_le_bytes()].concat()).refused_for(&scratch, "points of");
    }
    // Sizes of which another file would be right, and what has only one value.
    for (at, byte) in [(13, 3), (14, 0), (14, 6), (15, 1), (16, 32), (40, 1), (48, 0), (56, 8), (68, 1), (168, 1)] {
        forged(at, &[byte]).refused_for(&scratch, "header");
    }
}

/// Sizes that the file is too short for are refused before memory is asked for.
#[test]
fn sizes_beyond_the_file() {
    // The header of an empty tree, which is then one of 2^32 - 2 points: half a terabyte in 16 dimensions.
    let empty = KdTreeDyn::<f64>::new(Array2::zeros([0, 16]).view()).unwrap();
    let (mut file, points, leaves) = (written(&empty), u64::from(u32::MAX) - 1, 1u64 << 27);
    let sizes = [0, leaves * 32 * 16 * 8, leaves * 32 * 4, (leaves - 1) * 16, leaves * 32 * 8];
    let mut next = HEADER as u64;
    for (at, size) in sizes.into_iter().enumerate() {
        file[48 + 24 * at..][..8].copy_from_slice(&next.to_le_bytes());
        file[56 + 24 * at..][..8].copy_from_slice(&size.to_le_bytes());
        next = (next + size).next_multiple_of(64);
    }
    for (at, number) in [(24, points), (32, points), (40, next)] {
        file[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    seal(&mut file);
    let scratch = Scratch::new();
    fs::write(scratch.path("huge"), &file).unwrap();
    for tree in opened::<f64>(&scratch.path("huge")) {
        assert_eq!(fault(tree), FileFault::Truncated { found: HEADER as u64, expected: next });
    }
}

/// The same fault is named for every number of threads, where it has the choice.
#[test]
fn the_first_of_many_faults() {
    let points: Array2<f32> = Cloud::Uniform.points(200_000, 2, &mut Random::new(2));
    let mut file = written(&KdTreeDyn::<f32>::builder().leaf_size(16).build_dyn(points.view()).unwrap());
    let start = section(&file, Section::Rows).start;
    // At the ends, which are far apart, then elsewhere too.
    for (from, to) in [(5, 199_000), (100_001, 100_000), (40_000, 160_000)] {
        file.copy_within(start + 4 * from..start + 4 * from + 4, start + 4 * to);
        seal(&mut file);
        let faults = threads::COUNTS.map(|count| threads::with(count, || fault(KdTreeDyn::<f32>::read(&file[..]))));
        assert!(matches!(&faults[0], FileFault::Structure { what } if what.contains("twice")), "{:?}", faults[0]);
        assert!(faults.iter().all(|fault| *fault == faults[0]), "{faults:?}");
    }

    let start = section(&file, Section::Coordinates).start;
    for leaf in [12_000, 7000, 3000] {
        file[start + leaf * 128..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    }
    seal(&mut file);
    for count in threads::COUNTS {
        let what = "a point of leaf 3000 is outside of its box on axis 0".to_owned();
        let found = threads::with(count, || fault(KdTreeDyn::<f32>::read(&file[..])));
        assert_eq!(found, FileFault::Structure { what });
    }
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    match result.err().expect("the operating system refuses") {
        Error::Io { kind, .. } => kind,
        error => panic!("{error:?}"),
    }
}

#[test]
fn what_the_operating_system_refuses() {
    let scratch = Scratch::new();
    let missing = scratch.path("missing");
    assert_eq!(kind(KdTreeDyn::<f32>::load(&missing)), ErrorKind::NotFound);
    #[cfg(feature = "mmap")]
    assert_eq!(kind(KdTreeDyn::<f32>::map(&missing)), ErrorKind::NotFound);
    assert_eq!(kind(small().save(missing.join("tree"))), ErrorKind::NotFound);
    assert_eq!(kind(small().save("/")), ErrorKind::InvalidInput);
    let error = KdTreeDyn::<f32>::load(&missing).err().unwrap().to_string();
    assert!(error.starts_with(&missing.display().to_string()), "{error}");

    // A directory is no file, and what was written beside it is gone.
    fs::create_dir(scratch.path("directory")).unwrap();
    kind(small().save(scratch.path("directory")));
    kind(KdTreeDyn::<f32>::load(scratch.path("directory")));
    #[cfg(feature = "mmap")]
    kind(KdTreeDyn::<f32>::map(scratch.path("directory")));
    assert_eq!(scratch.files(), ["directory"]);
}

#[test]
fn read_only_files_are_accepted() {
    let scratch = Scratch::new();
    let path = scratch.path("tree");
    let tree = small();
    tree.save(&path).unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let points: Array2<f32> = Cloud::Uniform.points(5, 2, &mut Random::new(3));
    for opened in opened::<f32>(&path) {
        assert_same_answers(&opened.unwrap(), &tree, points.view());
    }
}

/// Takes or gives a byte at a time and fails in the end, if it does.
struct Slow<'a> {
    file: &'a [u8],
    interrupted: bool,
    fails: bool,
}

impl Read for Slow<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        match self.file {
            _ if self.interrupted => Err(ErrorKind::Interrupted.into()),
            [] if self.fails => Err(ErrorKind::ConnectionReset.into()),
            file => (&file[..file.len().min(1)]).read(to).inspect(|&read| self.file = &file[read..]),
        }
    }
}

struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        let written = bytes.len().min(self.0).min(100);
        self.0 -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn streams_that_fail() {
    let (tree, file) = (small(), written(&small()));
    let read = |file, fails| KdTreeDyn::<f32>::read(Slow { file, interrupted: false, fails });
    assert_eq!(written(&read(&file, false).unwrap()), file);
    for len in [0, 100, HEADER, HEADER + 1, file.len() - 1, file.len()] {
        assert_eq!(kind(read(&file[..len], true)), ErrorKind::ConnectionReset);
    }
    for room in [0, 1, HEADER, file.len() - 1] {
        assert_eq!(kind(tree.write(Full(room))), ErrorKind::StorageFull);
    }
    assert_eq!(kind(tree.write(Full(file.len()))), ErrorKind::BrokenPipe);
}
