//! What was measured, as a file for programs, as a table for people and as a chart.

use crate::measure::{Figure, Row, Suite};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::json;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Writes `limits.json`, `limits.md` and `limits.svg` where builds go. Returns their names.
pub fn write(suite: &Suite, level: &str, threads: usize) -> Result<[PathBuf; 3], Box<dyn Error>> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("target"),
        PathBuf::from,
    );
    std::fs::create_dir_all(&target)?;
    let files = ["limits.json", "limits.md", "limits.svg"].map(|name| target.join(name));
    let (rows, figures) = (suite.rows.borrow(), suite.figures.borrow());
    let report = json!({
        "level": level,
        "threads": threads,
        "rounds": suite.rounds(),
        "quick": suite.quick(),
        "jobs": &*rows,
        "figures": &*figures,
    });
    std::fs::write(&files[0], serde_json::to_string_pretty(&report)?)?;
    std::fs::write(&files[1], table(&rows, &figures))?;
    chart(&files[2], &rows)?;
    Ok(files)
}

/// The ratios as a table in Markdown.
fn table(rows: &[Row], figures: &[Figure]) -> String {
    let mut text = String::from("| job | time | over the limit | faster than |\n|---|---|---|---|\n");
    for row in rows {
        let peers: Vec<String> = row.peers.iter().map(|peer| format!("{} {:.2} x", peer.name, peer.speedup)).collect();
        text += &format!("| {} | {:.3} ms | {:.2} x | {} |\n", row.job, row.ours_ms, row.ratio, peers.join(", "));
    }
    for figure in figures {
        text += &format!("| {} | {:.2} {} | | |\n", figure.job, figure.value, figure.unit);
    }
    text
}

/// Pixels of a row, and where bars begin and where a ratio of 1 is.
const ROW: i32 = 16;
const START: i32 = 420;
const ONE: i32 = 120;

/// The longest bar, as a ratio; longer ones are cut, and say how long they are.
const MOST: f64 = 6.0;

/// A bar a job: how many times the limit it takes.
fn chart(file: &Path, rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let height = ROW * (rows.len() as i32 + 3);
    let width = START + (ONE as f64 * (MOST + 0.5)) as i32;
    let area = SVGBackend::new(file, (width as u32, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let font = TextStyle::from(("sans-serif", 11));
    let left = font.clone().pos(Pos::new(HPos::Left, VPos::Center));
    let right = font.pos(Pos::new(HPos::Right, VPos::Center));
    area.draw(&Text::new("time over the limit of the machine", (START, ROW), left.clone()))?;
    for (at, row) in rows.iter().enumerate() {
        let y = ROW * (at as i32 + 2);
        let end = START + (ONE as f64 * row.ratio.min(MOST)) as i32;
        area.draw(&Text::new(row.job.as_str(), (START - 8, y), right.clone()))?;
        area.draw(&Rectangle::new([(START, y - ROW / 3), (end, y + ROW / 3)], BLUE.mix(0.6).filled()))?;
        area.draw(&Text::new(format!("{:.2}", row.ratio), (end + 4, y), left.clone()))?;
    }
    let limit = [(START + ONE, ROW + ROW / 2), (START + ONE, height - ROW)];
    area.draw(&PathElement::new(limit, BLACK.stroke_width(1)))?;
    area.present()?;
    Ok(())
}
