//! `enroute demo`.

use crate::program::run;

#[test]
fn every_subscriber_gets_exactly_what_it_asked_for() {
    let ended = run(&["demo"], "");
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    for (filter, count) in [
        ("kind='flight' and dest='SFO' and dep_delay>=60", "31"),
        ("kind='flight' and origin='JFK' and dest in ('LAX','SFO','SEA') and arr_delay>30", "113"),
        ("kind='flight' and dep_time is null", "521"),
        ("kind='weather' and (wind_gust>=40 or visib<1)", "151"),
        ("kind='flight' and dest_lat between 24.5 and 31 and dest_lon between -87.7 and -79.9", "5,144"),
        ("manufacturer like 'BOEING%' and seats>300", "132"),
    ] {
        let row = ended.stdout.lines().find(|line| line.contains(filter)).expect(filter);
        let cells: Vec<_> = row.split(filter).nth(1).unwrap().split_whitespace().collect();
        assert_eq!(cells, [count, count, "0", "ok"], "{row}");
    }
    let links = ended.stdout.lines().filter(|line| line.contains(" - ")).count();
    assert_eq!(links, 10, "{}", ended.stdout);
    assert!(!ended.stdout.contains("WRONG"));
}
