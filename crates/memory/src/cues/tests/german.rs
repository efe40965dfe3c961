use super::check;

#[test]
fn corrections_and_prohibitions() {
    check(&[
        ("Nein, die andere Datei.", "correction denial"),
        ("Das ist falsch, der Port ist 8081", "correction"),
        ("Ich meinte den zweiten Absatz", "correction"),
        ("nimm lieber die kleine Variante", "correction"),
        ("Verwende Tabs statt Leerzeichen", "correction preference"),
        ("nicht die Überschrift, sondern den Text", "correction"),
        ("Du hast die Kopfzeile vergessen", "correction"),
        ("das funktioniert immer noch nicht", "correction"),
        ("Vielleicht besser ohne Bilder", "correction"),
        (
            "Bitte nicht die ganze Datei neu schreiben",
            "prohibition correction",
        ),
        ("Ändere die Konfiguration nicht", "prohibition"),
        ("Lösche niemals Daten ohne Rückfrage", "prohibition"),
        ("keine Emojis bitte", "prohibition"),
        ("auf keinen Fall auf main pushen", "prohibition"),
        ("Du darfst die Schnittstelle nicht verändern", "prohibition"),
        (
            "Füge einen Test für den leeren Fall hinzu",
            "!correction !prohibition request",
        ),
        ("kein Problem", "!prohibition"),
        ("Ja, mach das", "!correction approval"),
        ("Danke schön", "!correction talk"),
    ]);
}

#[test]
fn preferences_facts_requests() {
    check(&[
        ("Antworte ab jetzt immer auf Deutsch", "preference"),
        ("Ich bevorzuge kurze Funktionen", "preference"),
        ("Achte darauf, dass der Build grün bleibt", "preference"),
        ("nenn mich Sascha", "preference"),
        ("Fass dich kurz", "preference"),
        ("Ich wohne in Leipzig", "fact"),
        ("Wir nutzen Postgres 15", "fact"),
        ("Meine Tochter ist allergisch gegen Nüsse", "fact"),
        ("Die Frist ist der 3. Mai", "fact"),
        ("Der Termin wurde auf Dienstag verschoben", "change"),
        ("wir verwenden Jenkins nicht mehr", "change"),
        ("Kannst du das bitte prüfen?", "request"),
        ("Schreib eine Funktion, die Zahlen sortiert", "request"),
        ("die Tests ausführen", "request"),
        ("Wie funktioniert der Cache?", "question !request"),
        ("Als Nächstes kommt die Anmeldung", "goal"),
        ("Neue Aufgabe: die Versionshinweise", "goal"),
        ("ja, passt", "approval"),
        ("Das Wetter ist schön", "!preference !request"),
    ]);
}
