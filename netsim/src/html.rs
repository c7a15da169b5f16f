//! A report as one HTML page that needs nothing else: tables of numbers as plots, drawn in SVG.

use crate::report::Report;
use std::fmt::Write;

/// More bars than this nobody reads; the JSON has all.
const MOST_BARS: usize = 60;

/// Width of a plot and of the labels beside its bars, in pixels.
const WIDTH: f64 = 760.0;
const LABELS: f64 = 190.0;

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;max-width:860px;margin:2em auto;padding:0 1em;color:#222;background:#fff}\
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}svg{display:block;width:100%;height:auto}\
svg text{font:11px system-ui,sans-serif;fill:#333}.s0{fill:#2b6cb0}.s1{fill:#90cdf4}.s2{fill:#c53030}.s3{fill:#d69e2e}\
.l0{stroke:#2b6cb0}.l1{stroke:#d69e2e}polyline{fill:none;stroke-width:1.5}.axis{stroke:#999;stroke-width:1}\
ul.wrong{color:#c53030}p.key span{display:inline-block;margin-right:1.2em}.box{width:.8em;height:.8em;margin-right:.3em}";

/// The page of a report.
pub fn page(report: &Report) -> String {
    let mut page = String::new();
    let (name, verdict) =
        (escape(&report.name), if report.is_good() { "nothing is wrong" } else { "something is wrong" });
    let total = &report.total;
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{name}</title><style>{STYLE}</style></head><body>\n\
         <h1>{name}: {verdict}</h1>\n<p>{} brokers, {} links, seed {}, {:.3} s of virtual time. {} publications; {} deliveries had to \
         come, {} came, {} were lost to faults, {} more came; twice {}, missed {}, wrong {}.</p>\n",
        report.brokers,
        report.links.len(),
        report.seed,
        report.virtual_time_us as f64 / 1e6,
        report.publications,
        total.expected,
        total.received,
        total.lost(),
        total.optional,
        total.duplicates,
        total.missed,
        total.wrong,
    );
    if !report.complaints.is_empty() {
        let items: String = report.complaints.iter().map(|it| format!("<li>{}</li>", escape(it))).collect();
        let _ = writeln!(page, "<ul class=\"wrong\">{items}</ul>");
    }
    over_time(&mut page, report);
    heal_times(&mut page, report);
    traffic(&mut page, report);
    stretch(&mut page, report);
    control(&mut page, report);
    tables(&mut page, report);
    page.push_str("</body></html>\n");
    page
}

fn over_time(page: &mut String, report: &Report) {
    heading(page, "Bytes over time", &["control", "events"], "bytes in each second of virtual time");
    let (height, bottom) = (160.0, 140.0);
    let most = report.seconds.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
    let step = (WIDTH - LABELS) / report.seconds.len().max(2) as f64;
    let _ = write!(page, "<svg viewBox=\"0 0 {WIDTH} {height}\">");
    for series in 0..2 {
        let point = |(second, bytes): (usize, &[u64; 2])| {
            let (x, y) = (LABELS + second as f64 * step, bottom - bytes[series] as f64 / most * (bottom - 10.0));
            format!("{x:.1},{y:.1}")
        };
        let points: Vec<String> = report.seconds.iter().enumerate().map(point).collect();
        let _ = write!(page, "<polyline class=\"l{}\" points=\"{}\"/>", [0, 1][series], points.join(" "));
    }
    let seconds = report.seconds.len();
    let _ = writeln!(
        page,
        "<line class=\"axis\" x1=\"{LABELS}\" y1=\"{bottom}\" x2=\"{WIDTH}\" y2=\"{bottom}\"/>\
         <text x=\"{}\" y=\"14\" text-anchor=\"end\">{most}</text><text x=\"{LABELS}\" y=\"{}\">0 s</text>\
         <text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">{seconds} s</text></svg>",
        LABELS - 8.0,
        bottom + 14.0,
        bottom + 14.0
    );
}

fn heal_times(page: &mut String, report: &Report) {
    heading(
        page,
        "Time to come to rest",
        &["milliseconds"],
        "until the last thing happened, at each step that settles",
    );
    let rows = report.settles.iter().map(|settle| (format!("step {}", settle.step), vec![settle.took_us / 1_000]));
    bars(page, rows.collect());
}

fn traffic(page: &mut String, report: &Report) {
    heading(page, "Traffic by link", &["there", "back", "useless"], "events");
    let row = |line: &crate::report::LinkLine| {
        let [there, back] = line.tally.events;
        (line.ends.join(" - "), vec![there, back, line.tally.useless])
    };
    bars(page, report.links.iter().map(row).collect());
}

fn stretch(page: &mut String, report: &Report) {
    let (crossed, shortest, tree) = (report.calm_crossings, report.calm_shortest, report.calm_shared_tree);
    let note = format!(
        "events of settled times, each to each broker that wanted it; links crossed {crossed}, in the shortest paths {shortest}, \
         in one shared tree {tree}"
    );
    heading(page, "Path stretch", &["paths"], &note);
    let label = |percent: u64| format!("{}.{:02} times the shortest", percent / 100, percent % 100);
    bars(page, report.stretch.iter().map(|(&percent, &paths)| (label(percent), vec![paths])).collect());
}

fn control(page: &mut String, report: &Report) {
    heading(page, "Control", &["bytes"], "by kind of message");
    let row =
        |(kind, count): (&&str, &crate::tally::Count)| (format!("{kind} ({})", count.messages), vec![count.bytes]);
    bars(page, report.control.iter().map(row).collect());
}

fn tables(page: &mut String, report: &Report) {
    heading(page, "Tables", &["subscriptions", "roots", "interest held", "announced"], "filters, broker by broker");
    let row = |line: &crate::report::TableLine| {
        (line.broker.clone(), vec![line.subscriptions, line.forest_roots, line.interest, line.announced])
    };
    bars(page, report.tables.iter().map(row).collect());
}

fn heading(page: &mut String, title: &str, series: &[&str], note: &str) {
    let key = |(number, name): (usize, &&str)| {
        let class = if title == "Bytes over time" { [0, 3][number] } else { number };
        let swatch = "<svg class=\"box\" style=\"display:inline-block\" viewBox=\"0 0 1 1\">";
        format!("<span>{swatch}<rect class=\"s{class}\" width=\"1\" height=\"1\"/></svg>{}</span>", escape(name))
    };
    let keys: String = series.iter().enumerate().map(key).collect();
    let _ = writeln!(page, "<h2>{title}</h2><p class=\"key\">{keys}<span>({})</span></p>", escape(note));
}

/// Horizontal bars, the values of a row one behind the other.
fn bars(page: &mut String, mut rows: Vec<(String, Vec<u64>)>) {
    let left_out = rows.len().saturating_sub(MOST_BARS);
    rows.truncate(MOST_BARS);
    let most = rows.iter().map(|(_, values)| values.iter().sum::<u64>()).max().unwrap_or(0).max(1) as f64;
    let height = 16 * rows.len() + 4;
    let _ = write!(page, "<svg viewBox=\"0 0 {WIDTH} {height}\">");
    for (number, (label, values)) in rows.iter().enumerate() {
        let top = 16 * number;
        let _ = write!(
            page,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LABELS - 8.0,
            top + 12,
            escape(label)
        );
        let mut x = LABELS;
        for (series, &value) in values.iter().enumerate() {
            let width = value as f64 / most * (WIDTH - LABELS - 110.0);
            let _ = write!(
                page,
                "<rect class=\"s{series}\" x=\"{x:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"12\"/>",
                top + 2
            );
            x += width;
        }
        let numbers: Vec<String> = values.iter().map(u64::to_string).collect();
        let _ = write!(page, "<text x=\"{:.1}\" y=\"{}\">{}</text>", x + 5.0, top + 12, numbers.join(" / "));
    }
    page.push_str("</svg>\n");
    if left_out > 0 {
        let _ = writeln!(page, "<p>and {left_out} more</p>");
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Run, Scenario};

    #[test]
    fn a_page_stands_alone_and_is_well_formed() {
        let text = "
            name = 'a <b> & c'
            topology = { shape = 'ring', brokers = 4 }
            clients_per_broker = 1
            subscriptions_per_client = 1
            [[step]]
            do = 'settle'
            [[step]]
            do = 'publish'
            count = 50
            [[step]]
            do = 'settle'";
        let run = Run::new(Scenario::parse(text).expect("a scenario"), 1).expect("a good scenario");
        let page = page(&run.run().expect("a good scenario"));
        assert!(page.contains("a &lt;b&gt; &amp; c") && !page.contains("a <b>"), "{page}");
        assert!(!page.contains("http") && !page.contains("<script"), "it loads something");
        for tag in ["svg", "h2", "p", "text", "ul", "span"] {
            let open = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag} in {page}");
        }
        assert!(page.matches("<rect").count() > 30 && page.contains("1.00 times the shortest"), "{page}");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
