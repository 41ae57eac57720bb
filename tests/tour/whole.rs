//! The whole story, of clouds that are hard to tell it of.

use crate::chapters::{Story, chapters};
use crate::pictures::Pictures;
use crate::scan::scan;
use crate::table::Table;
use pullback::ndarray::{Array2, arr2, s};
use std::fs;
use std::path::PathBuf;

fn tell(points: &Array2<f64>, pictures: Option<PathBuf>) -> Result<Table, String> {
    let mut story = Story { table: Table::default(), pictures: Pictures::new(pictures)? };
    chapters(points, &mut story).map_err(|error| error.to_string())?;
    Ok(story.table)
}

#[test]
fn every_check_passes_on_any_cloud() {
    let points = scan(700, 1);
    let line = Array2::from_shape_fn((90, 3), |(row, axis)| if axis == 1 { 5.0 } else { row as f64 });
    let flat = Array2::from_shape_fn((90, 3), |(row, axis)| [(row % 10) as f64, (row / 10) as f64, -1.0][axis]);
    for (name, cloud) in [
        ("a scan", points.clone()),
        ("two points", points.slice(s![..2, ..]).to_owned()),
        ("a point", arr2(&[[7.0, -3.0, 1e5]])),
        ("nine times a point", arr2(&[[7.0, -3.0, 1e5]; 9])),
        ("a line", line),
        ("a lattice in a plane", flat),
        ("huge numbers", &points * 1e300),
        ("small numbers", &points * 1e-300),
        ("far away", &points + 1e9),
        ("the largest number", arr2(&[[f64::MAX; 3], [-f64::MAX; 3], [0.0; 3]])),
    ] {
        let table = tell(&cloud, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(table.counts(), (16, 0), "{name}:\n{table}");
    }
}

#[test]
fn pictures_are_written_where_they_are_wanted() {
    let directory = std::env::temp_dir().join(format!("pullback-tour-{}", std::process::id()));
    tell(&scan(300, 1), Some(directory.join("new").join("pictures"))).unwrap();
    for name in ["field.png", "depth.png", "levels.png", "kernels.png", "blurred.png"] {
        let bytes = fs::read(directory.join("new/pictures").join(name)).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 100, "{name}");
    }
    assert!(fs::read_to_string(directory.join("new/pictures/taylor.svg")).unwrap().contains("polyline"));

    let file = directory.join("new/pictures/field.png");
    let error = tell(&scan(3, 1), Some(file.clone())).err().unwrap();
    assert!(error.starts_with(&format!("{}: ", file.display())), "{error}");
    fs::remove_dir_all(&directory).unwrap();
}
