use proptest::prelude::*;

use super::*;

fn raw(text: &str) -> Raw {
    Raw::parse(text).unwrap()
}

#[track_caller]
fn check(
    text: &str,
    change: impl FnOnce(&mut Splice, &Raw) -> Result<(), SpliceError>,
    expected: &str,
) {
    let body = raw(text);
    let mut splice = Splice::new(&body);
    change(&mut splice, &body).unwrap();
    let written = splice.finish().unwrap();
    assert_eq!(&*written, expected);
    Raw::parse(written).unwrap();
}

#[test]
fn fields_are_set() {
    let set = |text: &str, expected: &str| {
        check(
            text,
            |splice, _| splice.set_field("k", raw("7")).map(drop),
            expected,
        );
    };
    set("{}", r#"{"k":7}"#);
    set("{ }", r#"{"k":7 }"#);
    set(r#"{ "a" : 1 }"#, r#"{ "a" : 1,"k":7 }"#);
    set(r#"{ "k" : 1 , "b":2}"#, r#"{ "k" : 7 , "b":2}"#);
    set(r#"{"k":1,"\u006b":2}"#, r#"{"k":1,"\u006b":7}"#);
}

#[test]
fn fields_are_removed() {
    let remove = |text: &str, expected: &str| {
        check(
            text,
            |splice, _| {
                splice.remove_field("k")?;
                splice.remove_field("l").map(drop)
            },
            expected,
        );
    };
    remove("{}", "{}");
    remove(r#"{"a":1}"#, r#"{"a":1}"#);
    remove(r#"{"k":1}"#, "{}");
    remove(r#"{"k":1,"l":2}"#, "{}");
    remove(r#"{"k":[1,2] , "a":1}"#, r#"{ "a":1}"#);
    remove(r#"{"k":1,"l":2,"a":1}"#, r#"{"a":1}"#);
    remove(r#"{"a":1,"k":2}"#, r#"{"a":1}"#);
    remove(r#"{"a":1, "k":2, "l":3, "b":4}"#, r#"{"a":1, "b":4}"#);
    remove(r#"{"k":0,"a":1,"k":2,"b":4,"l":1}"#, r#"{"a":1,"b":4}"#);
}

#[test]
fn removed_and_set_together() {
    check(
        r#"{"k":1}"#,
        |splice, _| {
            splice.remove_field("k")?;
            splice.set_field("m", raw("2"))?;
            splice.set_field("n", raw("3")).map(drop)
        },
        r#"{"m":2,"n":3}"#,
    );
}

#[test]
fn array_prefixes_are_replaced() {
    let replace = |text: &str, count: usize, inserted: &[&str], expected: &str| {
        let inserted: Vec<_> = inserted.iter().map(|text| raw(text)).collect();
        check(
            text,
            |splice, _| splice.replace_array_prefix("m", count, &inserted).map(drop),
            expected,
        );
    };
    replace(r#"{"m":[]}"#, 0, &[], r#"{"m":[]}"#);
    replace(r#"{"m":[]}"#, 0, &["1"], r#"{"m":[1]}"#);
    replace(r#"{"m":[ 1 , 2 ]}"#, 0, &[], r#"{"m":[ 1 , 2 ]}"#);
    replace(r#"{"m":[ 1 , 2 ]}"#, 0, &["0"], r#"{"m":[ 0,1 , 2 ]}"#);
    replace(r#"{"m":[ 1 , 2 ]}"#, 1, &[], r#"{"m":[2 ]}"#);
    replace(
        r#"{"m":[ 1 , 2 , 3 ]}"#,
        1,
        &["8", "9"],
        r#"{"m":[8,9,2 , 3 ]}"#,
    );
    replace(r#"{"m":[1,2]}"#, 2, &["9"], r#"{"m":[9]}"#);
    replace(r#"{"m":[1,2]}"#, 2, &[], r#"{"m":[]}"#);
}

#[test]
fn arrays_are_appended_to() {
    check(
        r#"{"m":[1 ]}"#,
        |splice, _| splice.append_to_array("m", &[raw("2"), raw("3")]).map(drop),
        r#"{"m":[1,2,3 ]}"#,
    );
    check(
        r#"{"m":[1]}"#,
        |splice, _| {
            splice.replace_array_prefix("m", 1, &[raw("0")])?;
            splice.append_to_array("m", &[raw("2")]).map(drop)
        },
        r#"{"m":[0,2]}"#,
    );
    check(
        r#"{"m":[]}"#,
        |splice, _| splice.append_to_array("m", &[raw("2")]).map(drop),
        r#"{"m":[2]}"#,
    );
}

#[test]
fn inner_values_are_changed() {
    check(
        r#"{"m":[{"cache_control":{"type":"ephemeral"},"text":"a"},{"text" : "b"}]}"#,
        |splice, body| {
            let messages = body.field("m").unwrap();
            let elements: Vec<_> = messages.array().collect();
            splice.remove_field_of(&elements[0], "cache_control")?;
            splice
                .replace(&elements[1].field("text").unwrap(), raw("\"c\""))
                .map(drop)
        },
        r#"{"m":[{"text":"a"},{"text" : "c"}]}"#,
    );
}

#[test]
fn impossible_changes_are_refused() {
    let body = raw(r#"{"m":[1,2],"s":"x"}"#);
    let mut splice = Splice::new(&body);
    let error = |result: Result<&mut Splice, SpliceError>| result.map(drop).unwrap_err();
    assert_eq!(
        error(splice.replace(&raw("1"), raw("2"))),
        SpliceError::NotPart
    );
    assert_eq!(
        error(splice.replace_array_prefix("m", 3, &[])),
        SpliceError::TooFewElements { count: 3, len: 2 }
    );
    assert_eq!(
        error(splice.append_to_array("s", &[])),
        SpliceError::NotAnArray {
            name: "s".to_owned()
        }
    );
    let messages = body.field("m").unwrap();
    assert_eq!(
        error(splice.set_field_of(&messages, "a", raw("1"))),
        SpliceError::NotAnObject
    );
    splice.set_field("m", raw("[]")).unwrap();
    splice.append_to_array("m", &[raw("3")]).unwrap();
    assert_eq!(
        splice.finish().unwrap_err(),
        SpliceError::Overlap { offset: 9 }
    );
}

#[test]
fn the_next_turns_request_begins_with_this_ones() {
    let memory = [raw(r#"{"role":"user","content":"memory"}"#)];
    let rewrite = |body: &str| {
        let body = raw(body);
        let mut splice = Splice::new(&body);
        splice.replace_array_prefix("messages", 2, &memory).unwrap();
        splice.finish().unwrap()
    };
    let this = rewrite(r#"{"model": "m", "messages": [1, 2, {"a": 3}]}"#);
    let next = rewrite(r#"{"model": "m", "messages": [1, 2, {"a": 3}, 4, 5]}"#);
    assert!(next.starts_with(this.strip_suffix("]}").unwrap()));
}

/// JSON with everything odd in it, white space included.
fn json() -> impl Strategy<Value = String> {
    let string = prop_oneof![
        "[a-c]{0,3}".prop_map(|text| format!("\"{text}\"")),
        Just(r#""\ud83d""#.to_owned()),
        Just(r#""\ude00\ud83d""#.to_owned()),
        Just(r#""\u0061\/\b\f\n\r\t\"\\é😀""#.to_owned()),
        Just(r#""\u006b""#.to_owned()),
        Just(r#""},]{[""#.to_owned()),
    ];
    let leaf = prop_oneof![
        string.clone(),
        Just("1e3".to_owned()),
        Just("-0.0E+00".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just(format!("{}{}", "[".repeat(400), "]".repeat(400))),
    ];
    let space = prop_oneof![Just(""), Just(" "), Just("\n\t"), Just("\r\n")];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let space = space.clone();
        let key = string.clone();
        prop_oneof![
            proptest::collection::vec((space.clone(), inner.clone(), space.clone()), 0..5)
                .prop_map(|elements| {
                    let elements: Vec<_> = elements
                        .iter()
                        .map(|(before, value, after)| format!("{before}{value}{after}"))
                        .collect();
                    format!("[{}]", elements.join(","))
                }),
            proptest::collection::vec((space.clone(), key, space.clone(), inner, space), 0..5)
                .prop_map(|fields| {
                    let fields: Vec<_> = fields
                        .iter()
                        .map(|(a, key, b, value, c)| format!("{a}{key}{b}:{c}{value}{a}"))
                        .collect();
                    format!("{{{}}}", fields.join(","))
                }),
        ]
    })
}

/// An object that has the array `m` as one field among others.
fn body() -> impl Strategy<Value = (String, usize)> {
    (
        proptest::collection::vec(json(), 0..6),
        json(),
        json(),
        prop_oneof![Just(""), Just(" "), Just("\n")],
    )
        .prop_map(|(elements, before, after, space)| {
            let count = elements.len();
            let elements = elements.join(&format!("{space},{space}"));
            (
                format!("{{{space}\"a\":{before},\"m\":[{space}{elements}{space}],\"a\":{after}}}"),
                count,
            )
        })
}

proptest! {
    #[test]
    fn without_a_change_nothing_changes(text in json()) {
        let body = raw(&text);
        let written = Splice::new(&body).finish().unwrap();
        prop_assert_eq!(&*written, body.as_str());
    }

    #[test]
    fn covering_nothing_changes_nothing((text, _) in body()) {
        let body = raw(&text);
        let mut splice = Splice::new(&body);
        splice.replace_array_prefix("m", 0, &[]).unwrap();
        splice.append_to_array("m", &[]).unwrap();
        splice.remove_field("absent").unwrap();
        prop_assert_eq!(&*splice.finish().unwrap(), text);
    }

    #[test]
    fn what_is_not_covered_stays_as_it_is((text, count) in body(), dropped in 0usize..6) {
        let body = raw(&text);
        let dropped = dropped.min(count);
        let mut splice = Splice::new(&body);
        splice.replace_array_prefix("m", dropped, &[raw("0")]).unwrap();
        let written = Raw::parse(splice.finish().unwrap()).unwrap();
        let fields = |raw: &Raw| raw.object().map(|(key, value)| (key.decode().into_owned(), value)).collect::<Vec<_>>();
        let (old, new) = (fields(&body), fields(&written));
        prop_assert_eq!(old[0].1.as_str(), new[0].1.as_str());
        prop_assert_eq!(old[2].1.as_str(), new[2].1.as_str());
        let old: Vec<_> = old[1].1.array().skip(dropped).collect();
        let new: Vec<_> = new[1].1.array().collect();
        prop_assert_eq!(new[0].as_str(), "0");
        prop_assert_eq!(&new[1..], &old[..]);
    }

    #[test]
    fn values_replaced_by_themselves_change_nothing(text in json()) {
        let body = raw(&text);
        let mut splice = Splice::new(&body);
        for (_, value) in body.object() {
            splice.replace(&value, Raw::parse(value.as_str()).unwrap()).unwrap();
        }
        for value in body.array() {
            splice.replace(&value, Raw::parse(value.as_str()).unwrap()).unwrap();
        }
        prop_assert_eq!(&*splice.finish().unwrap(), body.as_str());
    }

    #[test]
    fn fields_come_and_go(text in json(), key in "[a-k]") {
        let body = raw(&text);
        if body.kind() == Kind::Object {
            let mut splice = Splice::new(&body);
            splice.set_field(&key, raw("[7]")).unwrap();
            let with = Raw::parse(splice.finish().unwrap()).unwrap();
            let set = with.field(&key).unwrap();
            prop_assert_eq!(set.as_str(), "[7]");
            let mut splice = Splice::new(&with);
            splice.remove_field(&key).unwrap();
            let without = Raw::parse(splice.finish().unwrap()).unwrap();
            prop_assert!(without.field(&key).is_none());
            let others = |raw: &Raw| raw.object()
                .filter(|(name, _)| name.decode() != key)
                .map(|(_, value)| value.as_str().to_owned())
                .collect::<Vec<_>>();
            prop_assert_eq!(others(&without), others(&body));
        }
    }
}
