//! Real files, which are not part of the repository.

use flate2::read::GzDecoder;
use ndarray::{Array1, Array2, Array3};
use std::env;
use std::fs::{File, read, read_to_string};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The file `name` of the directory `PULLBACK_DATA`, by default `../shared/data`. Where it is missing the caller's test
/// is skipped, which is printed, or fails where `PULLBACK_REQUIRE_DATA=1`.
pub fn find(name: &str) -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let path = env::var_os("PULLBACK_DATA").map_or_else(default, PathBuf::from).join(name);
    if path.is_file() {
        return Some(path);
    }
    assert!(env::var_os("PULLBACK_REQUIRE_DATA").is_none_or(|v| v != "1"), "{} is missing", path.display());
    eprintln!("skipped: {} is missing", path.display());
    None
}

/// `car_cloud400.csv`: (24989, 3), outdoors, from the side of a road.
pub fn car() -> Option<Array2<f32>> {
    let text = read_to_string(find("car_cloud400.csv")?).expect("the file is read");
    Some(from_words(text.lines().skip(1).map(|line| line.split(',').take(3)), 24_989))
}

/// `spot.obj`: (2930, 3), the vertices of a mesh that is its own mirror image.
pub fn spot() -> Option<Array2<f64>> {
    let text = read_to_string(find("spot.obj")?).expect("the file is read");
    let vertices = text.lines().filter_map(|line| line.strip_prefix("v "));
    Some(from_words(vertices.map(str::split_whitespace), 2930))
}

/// `autzen-thin.las`: (10653, 3), an airborne survey in feet.
pub fn autzen() -> Option<Array2<f64>> {
    let bytes = read(find("autzen-thin.las")?).expect("the file is read");
    // A header of LAS 1.2, little-endian.
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let f64_at = |at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (start, rows) = (u32_at(96) as usize, u32_at(107) as usize);
    let record = usize::from(u16::from_le_bytes([bytes[105], bytes[106]]));
    let coordinate = |(row, axis)| {
        let steps = u32_at(start + row * record + 4 * axis).cast_signed();
        f64::from(steps) * f64_at(131 + 8 * axis) + f64_at(155 + 8 * axis)
    };
    let points = Array2::from_shape_fn([rows, 3], coordinate);
    assert_eq!(rows, 10_653);
    Some(points)
}

/// `office1_stride4_160x120_xyz.f32`: (19200, 3), a frame of a depth camera, 120 rows of 160 pixels, with runs of NaN.
pub fn office() -> Option<Array2<f32>> {
    let bytes = read(find("office1_stride4_160x120_xyz.f32")?).expect("the file is read");
    let (values, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    let cells = values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let points = Array2::from_shape_vec([120 * 160, 3], cells).expect("a frame of 120 x 160 pixels");
    assert_eq!(points.rows().into_iter().filter(|row| row.iter().any(|x| x.is_nan())).count(), 3288);
    Some(points)
}

/// `kernels_12.npy`: (12, 25, 25), blur kernels. The first eight are Gaussians of the variances and angles in degrees that
/// come with them; the others are paths of a moving camera.
pub fn kernels() -> Option<(Array3<f32>, [[f64; 3]; 8])> {
    let bytes = read(find("kernels_12.npy")?).expect("the file is read");
    // Version 1 of the format: ten bytes, of which the last two are the length of a description.
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let described = String::from_utf8_lossy(&bytes[..start]);
    assert!(described.contains("'<f4', 'fortran_order': False, 'shape': (12, 25, 25)"), "{described}");
    let (values, rest) = bytes[start..].as_chunks::<4>();
    assert!(rest.is_empty());
    let cells = values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let kernels = Array3::from_shape_vec([12, 25, 25], cells).expect("12 kernels of 25 x 25");
    let isotropic = [0.49, 1.44, 2.56, 4.0].map(|variance| [variance, variance, 0.0]);
    let [a, b, c, d] = isotropic;
    Some((kernels, [a, b, c, d, [7.0, 2.0, 0.0], [9.0, 1.5, 144.0], [8.0, 1.5, 45.0], [7.0, 5.0, 52.2]]))
}

/// `tip3p.pdb`: (2685, 3), oxygen and both hydrogens of each molecule of water in a periodic cube of 30, some of them
/// outside of it.
pub fn water() -> Option<Array2<f64>> {
    let text = read_to_string(find("tip3p.pdb")?).expect("the file is read");
    let atoms = text.lines().filter(|line| line.starts_with("ATOM") || line.starts_with("HETATM"));
    // Three columns of eight characters, with or without a space between.
    Some(from_words(atoms.map(|line| [30, 38, 46].into_iter().map(|at| &line[at..at + 8])), 2685))
}

/// `meuse.txt`: (155, 2), where soil was sampled beside a river, in metres.
pub fn meuse() -> Option<Array2<f64>> {
    let text = read_to_string(find("meuse.txt")?).expect("the file is read");
    Some(from_words(text.lines().skip(1).map(|line| line.split(',').take(2)), 155))
}

/// `meuse.txt`: (155), zinc in the soil of each sample, in ppm.
pub fn meuse_zinc() -> Option<Array1<f64>> {
    let text = read_to_string(find("meuse.txt")?).expect("the file is read");
    let zinc = text.lines().skip(1).map(|line| line.split(',').nth(5).and_then(|word| word.parse().ok()));
    Some(zinc.map(|value| value.expect("a number")).collect())
}

/// `poses_kitti.txt`: (1113, 12), rotation and translation of each step of a drive.
pub fn poses() -> Option<Array2<f64>> {
    let text = read_to_string(find("poses_kitti.txt")?).expect("the file is read");
    Some(from_words(text.lines().map(str::split_whitespace), 1113))
}

/// `geb079_u8_487x187x39.gz`: a building of 487 x 187 x 39 voxels: 0 is unknown, 1 free and 2 occupied.
pub fn building() -> Option<Array3<u8>> {
    let file = File::open(find("geb079_u8_487x187x39.gz")?).expect("the file is there");
    let mut voxels = vec![];
    GzDecoder::new(file).read_to_end(&mut voxels).expect("a file of gzip");
    Some(Array3::from_shape_vec([487, 187, 39], voxels).expect("as many voxels"))
}

/// Rows of numbers.
fn from_words<'a, T: FromStr>(lines: impl Iterator<Item = impl Iterator<Item = &'a str>>, rows: usize) -> Array2<T> {
    let number = |word: &str| word.trim().parse().ok().expect("a number");
    let cells: Vec<T> = lines.flatten().map(number).collect();
    Array2::from_shape_vec([rows, cells.len() / rows], cells).expect("as many numbers in each line")
}
