//! Pictures: PNG files as arrays of rows, columns and channels with values from 0 to 1.

use pullback::ndarray::{Array2, Array3, ArrayView3};
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// A grey or coloured file; transparency is left out.
pub fn read(path: impl AsRef<Path>) -> Result<Array3<f32>, Box<dyn Error>> {
    let mut decoder = png::Decoder::new(BufReader::new(File::open(path)?));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let mut bytes = vec![0; reader.output_buffer_size().ok_or("a picture that does not fit into memory")?];
    let frame = reader.next_frame(&mut bytes)?;
    let samples = frame.color_type.samples();
    let channels = if samples < 3 { 1 } else { 3 };
    let (height, width) = (frame.height as usize, frame.width as usize);
    let value = |(row, column, channel)| f32::from(bytes[(row * width + column) * samples + channel]) / 255.0;
    Ok(Array3::from_shape_fn((height, width, channels), value))
}

/// Values below 0 and above 1 are cut.
pub fn write(path: impl AsRef<Path>, picture: ArrayView3<'_, f32>) -> Result<(), Box<dyn Error>> {
    let (height, width, channels) = picture.dim();
    let bytes: Vec<u8> = picture.iter().map(|&value| (value.clamp(0.0, 1.0) * 255.0).round() as u8).collect();
    let mut encoder = png::Encoder::new(File::create(path)?, u32::try_from(width)?, u32::try_from(height)?);
    encoder.set_color(if channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
    encoder.write_header()?.write_image_data(&bytes)?;
    Ok(())
}

/// Numbers from the least to the greatest as colours from dark blue over green to yellow.
pub fn shaded(field: &Array2<f64>) -> Array3<f32> {
    let (least, most) = (field.fold(f64::INFINITY, |a, &b| a.min(b)), field.fold(f64::NEG_INFINITY, |a, &b| a.max(b)));
    Array3::from_shape_fn((field.nrows(), field.ncols(), 3), |(row, column, channel)| {
        let shade = (field[[row, column]] - least) / (most - least).max(f64::MIN_POSITIVE);
        let ends = [[68.0, 33.0, 253.0], [1.0, 145.0, 231.0], [84.0, 140.0, 37.0]][channel];
        let (from, to, part) =
            if shade < 0.5 { (ends[0], ends[1], 2.0 * shade) } else { (ends[1], ends[2], 2.0 * shade - 1.0) };
        ((from + (to - from) * part) / 255.0) as f32
    })
}

/// Something with edges and lines of every direction, for where there is no file.
pub fn made_up(height: usize, width: usize) -> Array3<f32> {
    Array3::from_shape_fn((height, width, 1), |(row, column, _)| {
        let (y, x) = (row as f32 - height as f32 / 2.0, column as f32 - width as f32 / 2.0);
        let rings = (x.hypot(y) / 3.0).sin();
        let squares = if (row / 24 + column / 24) % 2 == 0 { 0.3 } else { -0.3 };
        0.5 + 0.2 * rings + squares
    })
}
