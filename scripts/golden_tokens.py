#!/usr/bin/env python3
"""Writes the golden table of token counts: our own texts, counted by OpenAI's tiktoken.

    pip install tiktoken
    scripts/golden_tokens.py > crates/transcript/src/tokens/golden.json

tiktoken fetches the rank files of its encodings. Without a network, name a folder that holds cl100k_base.tiktoken and
o200k_base.tiktoken with --ranks; their digests are checked all the same.

    scripts/golden_tokens.py --count < texts.json

counts a JSON array of texts instead and prints [cl100k_base, o200k_base] for each: the opt-in test
`agrees_with_tiktoken_on_random_texts` uses this.
"""

import argparse
import json
import sys

import tiktoken
import tiktoken_ext.openai_public as public
from tiktoken.load import load_tiktoken_bpe

PROSE = """The ferry had stopped running in October, so whoever wanted to reach the island in winter had to ask one of the \
fishermen. Most of them said no. It was not the waves, they explained, but the fog: it came down within minutes, and then \
nobody could tell the harbour from the open sea. Marta asked anyway, every morning, with a thermos of coffee in each hand. \
On the ninth day old Henrik shrugged, started the engine and told her to sit still.

"What do you need out there?" he shouted over the noise. She held up the box with the recording equipment. Her grandmother \
had been the last keeper of the lighthouse, and somewhere in the tower, according to the letters, there was a wall on which \
every keeper had written down the weather of the day on which he left. Nobody had photographed it, and next spring the tower \
would be sold, painted, and turned into three holiday flats with a view. She thought that somebody should at least read it \
before that happened; and since nobody else had volunteered, it would have to be her."""

RUST = """use std::collections::BTreeMap;

/// Counts how often each word occurs, ignoring case.
pub fn word_frequencies(text: &str) -> BTreeMap<String, usize> {
    let mut frequencies = BTreeMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
        *frequencies.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    frequencies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_matter() {
        let frequencies = word_frequencies("Tea, tea and TEA; coffee_2!");
        assert_eq!(frequencies.get("tea"), Some(&3));
        assert_eq!(frequencies.get("coffee_2"), None, "an underscore separates words");
    }
}
"""

PYTHON = '''from dataclasses import dataclass, field
import asyncio
import logging

logger = logging.getLogger(__name__)


@dataclass
class RetryPolicy:
    attempts_max: int = 5
    delay_base_s: float = 0.25
    retry_statuses: set[int] = field(default_factory=lambda: {429, 500, 502, 503})

    def delay(self, attempt: int) -> float:
        return min(self.delay_base_s * 2 ** attempt, 30.0)


async def fetch_with_retry(client, url: str, policy: RetryPolicy = RetryPolicy()) -> bytes:
    """Returns the body, or raises the last error when all attempts failed."""
    for attempt in range(policy.attempts_max):
        response = await client.get(url, timeout=10)
        if response.status_code not in policy.retry_statuses:
            response.raise_for_status()
            return response.content
        logger.warning("attempt %d of %d for %s: status %d", attempt + 1, policy.attempts_max, url, response.status_code)
        await asyncio.sleep(policy.delay(attempt))
    raise RuntimeError(f"gave up on {url!r} after {policy.attempts_max} attempts")
'''

TYPESCRIPT = """import { useEffect, useMemo, useState } from "react";

type Invoice = { id: string; customerName: string; totalCents: number; paidAt?: Date };

export function InvoiceTable({ invoices, onSelect }: { invoices: Invoice[]; onSelect: (id: string) => void }) {
  const [query, setQuery] = useState("");
  const visible = useMemo(
    () => invoices.filter((invoice) => invoice.customerName.toLowerCase().includes(query.toLowerCase())),
    [invoices, query],
  );

  useEffect(() => {
    document.title = `${visible.length} invoices`;
  }, [visible.length]);

  return (
    <section className="invoice-table">
      <input value={query} onChange={(event) => setQuery(event.target.value)} placeholder="Search customers" />
      {visible.map((invoice) => (
        <button key={invoice.id} disabled={!invoice.paidAt} onClick={() => onSelect(invoice.id)}>
          {invoice.customerName}: {(invoice.totalCents / 100).toFixed(2)} EUR
        </button>
      ))}
    </section>
  );
}
"""

JSON_TEXT = json.dumps(
    {
        "type": "tool_use",
        "name": "create_shipment",
        "input": {
            "warehouse_id": "WH-0042",
            "customer": {"first_name": "Amal", "last_name": "Okafor", "email": "amal.okafor@example.org"},
            "items": [
                {"sku": "LAMP-BRASS-09", "quantity": 2, "unit_price": 49.9, "fragile": True},
                {"sku": "CABLE-USB-C-2M", "quantity": 10, "unit_price": 6.25, "fragile": False},
                {"sku": "DESK-OAK-160", "quantity": 1, "unit_price": 489.0, "fragile": False},
            ],
            "deliver_after": "2026-04-17T08:30:00Z",
            "notes": None,
            "address": {"street": "14 Harbour Lane", "zip": "04103", "city": "Leipzig", "country_code": "DE"},
        },
    }
)

LOG = """2026-03-02 09:14:07.221 INFO  billing-worker-3 picked job 8f1c2a (invoice 2026-1187, 14 positions)
2026-03-02 09:14:07.398 WARN  billing-worker-3 tax table for region 'AT-9' is 41 days old, using it anyway
2026-03-02 09:14:08.020 ERROR billing-worker-3 job 8f1c2a failed: PdfRenderError: font 'Inter-Regular' not found in /usr/share/fonts
    at renderPage (/srv/billing/dist/pdf/render.js:118:23)
    at async Worker.run (/srv/billing/dist/worker.js:57:9)
2026-03-02 09:14:08.021 INFO  scheduler job 8f1c2a goes back to the queue (attempt 2 of 5, next in 30 s)
test result: FAILED. 211 passed; 3 failed; 2 ignored; 0 measured; finished in 12.48s
"""

MARKDOWN = """# Moving the search index

## Why
The old index lives on one machine. When it restarts, search is down for **eleven minutes**.

## Steps
1. Build the new index next to the old one: `make index TARGET=staging`.
2. Compare both with `scripts/compare_index.py --sample 5000`; fewer than 0.1 % of the queries may differ.
3. Switch the alias, wait a day, delete the old index.

| step | owner | done |
| --- | --- | --- |
| build | Ines | yes |
| compare | Tomás | no |

> Do not delete the old index before Monday; see [the runbook](https://wiki.example.org/search/runbook#rollback).
"""

DIFF = """diff --git a/src/cache.rs b/src/cache.rs
index 4f9c1d2..b81e0a7 100644
--- a/src/cache.rs
+++ b/src/cache.rs
@@ -41,9 +41,12 @@ impl Cache {
     pub fn get(&mut self, key: &Key) -> Option<&Entry> {
-        let entry = self.entries.get(key)?;
-        Some(entry)
+        let entry = self.entries.get_mut(key)?;
+        entry.hits += 1;
+        self.order.touch(entry.slot);
+        Some(entry)
     }
 }
"""

LANGUAGES = {
    "german": "Bitte ändere die Schnittstelle nicht mehr, sie wird seit gestern von zwei anderen Gruppen benutzt. Wenn dir beim "
    "Aufräumen etwas auffällt, schreib es in die Liste der offenen Punkte; wir besprechen das am Donnerstag. Die Prüfungen "
    "müssen vor jedem Einspielen durchlaufen, auch die langsamen, und die Übersetzungsdateien bleiben vorläufig, wie sie sind. "
    "Über größere Änderungen möchte ich vorher Bescheid wissen, weil wir sie mit der Geschäftsführung abstimmen müssen.",
    "french": "Je préfère que la page d'accueil reste très simple : un titre, une phrase, un bouton. La dernière fois, nous avons "
    "ajouté trop de détails et personne n'a trouvé le lien vers l'inscription. Pourrais-tu aussi vérifier que les accents "
    "s'affichent correctement dans les courriels envoyés à minuit ? Ils étaient illisibles chez plusieurs abonnés, même après "
    "la mise à jour du mois dernier, et je ne comprends toujours pas d'où vient l'erreur.",
    "spanish": "No borres los registros antiguos todavía; el equipo de contabilidad los necesita hasta fin de año. Lo que sí "
    "puedes hacer es mover las imágenes al otro servidor, porque el disco está casi lleno y la copia de seguridad falló anoche. "
    "Cuando termines, avísame con un mensaje corto y dime cuántos gigabytes quedaron libres. También quería preguntarte si la "
    "migración podría hacerse el sábado, así nadie se daría cuenta.",
    "chinese": "请不要再修改这个接口，昨天开始已经有另外两个小组在使用它了。如果整理代码的时候发现什么问题，就写到待办列表里，星期四我们一起讨论。"
    "每次提交之前都要跑完所有测试，包括比较慢的那些。翻译文件暂时保持原样。如果要做比较大的改动，请提前告诉我，因为我们需要和管理层商量。"
    "另外，数据库的备份昨天晚上失败了，原因是磁盘空间不足，你可以先把旧的图片移到另一台服务器上。",
    "japanese": "このインターフェースはもう変更しないでください。昨日から他の二つのチームが使い始めています。整理しているときに気づいたことがあれば、"
    "未解決の項目として一覧に書いておいてください。木曜日の会議で話し合いましょう。コミットする前に、時間のかかるものも含めて、必ずすべてのテストを"
    "実行してください。翻訳ファイルは当分の間そのままにしておきます。大きな変更をする場合は、事前に知らせてください。",
    "korean": "이 인터페이스는 더 이상 수정하지 마세요. 어제부터 다른 두 팀이 사용하고 있습니다. 코드를 정리하다가 눈에 띄는 점이 있으면 "
    "할 일 목록에 적어 두세요. 목요일에 함께 이야기합시다. 커밋하기 전에는 느린 테스트까지 포함해서 모든 테스트를 실행해야 합니다. "
    "번역 파일은 당분간 그대로 두고, 큰 변경이 있으면 미리 알려 주세요.",
    "russian": "Пожалуйста, больше не меняй этот интерфейс: со вчерашнего дня им пользуются ещё две команды. Если при уборке кода "
    "что-нибудь заметишь, запиши в список открытых вопросов, обсудим это в четверг. Перед каждой отправкой изменений должны "
    "пройти все проверки, в том числе медленные. Файлы с переводами пока оставь как есть, а о больших изменениях сообщай заранее.",
    "arabic": "من فضلك لا تغيّر هذه الواجهة بعد الآن، فهناك فريقان آخران يستخدمانها منذ الأمس. إذا لاحظت شيئًا أثناء ترتيب الشيفرة "
    "فاكتبه في قائمة الأسئلة المفتوحة وسنناقشه يوم الخميس. يجب أن تنجح جميع الاختبارات قبل كل إرسال، حتى البطيئة منها.",
    "hindi": "कृपया अब इस इंटरफ़ेस को मत बदलिए, कल से दो और टीमें इसका उपयोग कर रही हैं। कोड साफ़ करते समय कुछ दिखे तो उसे खुले प्रश्नों की "
    "सूची में लिख दीजिए, हम गुरुवार को उस पर बात करेंगे। हर बार भेजने से पहले सभी परीक्षण पूरे होने चाहिए, धीमे वाले भी।",
    "greek": "Σε παρακαλώ μην αλλάξεις άλλο αυτή τη διεπαφή, από χθες τη χρησιμοποιούν και δύο άλλες ομάδες. Αν δεις κάτι όταν "
    "καθαρίζεις τον κώδικα, γράψε το στη λίστα με τα ανοιχτά θέματα και θα το συζητήσουμε την Πέμπτη.",
}

# Texts that tell the kinds apart on which estimates are judged, and texts that are hard to split.
SAMPLES = [
    ("prose", "prose", PROSE),
    ("markdown", "prose", MARKDOWN),
    ("rust", "code", RUST),
    ("python", "code", PYTHON),
    ("typescript", "code", TYPESCRIPT),
    ("diff", "code", DIFF),
    ("json", "json", JSON_TEXT),
    ("json, indented", "json", json.dumps(json.loads(JSON_TEXT), indent=2)),
    ("log", "log", LOG),
    *((name, "cjk" if name in ("chinese", "japanese", "korean") else "other", text) for name, text in LANGUAGES.items()),
    ("empty", "edge", ""),
    ("one space", "edge", " "),
    ("one letter", "edge", "x"),
    ("spaces", "edge", " " * 1000),
    ("spaces and words", "edge", (" " * 37 + "word") * 20),
    ("tabs", "edge", "\t" * 90 + "x"),
    ("line ends", "edge", "a\n\n\n\nb\r\n\r\nc\r\r" + "\n" * 200),
    ("letters", "edge", "a" * 700),
    ("digits", "edge", "3141592653589793238462643383279502884197169399375105820974944592" * 3),
    ("numbers", "edge", "1 12 123 1234 12345 1,234,567.89 0x7fff_ffff 1e-9 2026-11-29T08:15:00Z"),
    ("signs", "edge", "-" * 120 + "=" * 80 + "/*" * 30 + "!?!?#$%&@{}[]()<>|\\~^`'\""),
    ("hashes", "edge", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 e3b0c44298fc1c149afbf4c8996fb924"),
    ("base64", "edge", "VGhlIGtlZXBlciB3cm90ZSBkb3duIHRoZSB3ZWF0aGVyIG9mIHRoZSBkYXkgb24gd2hpY2ggaGUgbGVmdC4=" * 3),
    ("uuids", "edge", "6f2c1b1e-8a5d-4b0e-9b3a-1f0c9d8e7a65 0b9f3c52-61d4-4f7a-8f0e-52a7c3d9e841"),
    ("emoji", "edge", "😀😃 👩‍👩‍👧 🇩🇪🇯🇵 👍🏽 ✅ ❌ ⚠️ 🦀🦀🦀"),
    ("marks", "edge", "e\u0301 a\u0308 n\u0303 Z\u0334\u0358\u0322 \u200b\u200d\ufeff\u00a0\u2028"),
    ("special tokens", "edge", "<|endoftext|><|fim_prefix|> <|im_start|>user <|endofprompt|> <|start|>assistant"),
    ("controls", "edge", "\x00\x01\x1b[31mred\x1b[0m\x07\x7f"),
    ("contractions", "edge", "I'm, you're, it's, they'LL, we'D, don't, y'all'd've, rock 'n' roll"),
    ("identifiers", "edge", "parseHTTPResponse XMLHttpRequest snake_case_name SCREAMING_SNAKE __init__ utf8ToUtf16 iOS17Beta2"),
    ("paths", "edge", "/usr/lib/x86_64-linux-gnu/libssl.so.3 C:\\Users\\amal\\AppData\\Local\\Temp ../../src/main.rs:118:23"),
    ("rare scripts", "edge", "ᚠᛇᚻ ⴰⵎⴰⵣⵉⵖ ꦧꦱꦗꦮ 𓀀𓁐 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ﷽ ཨོཾ"),
    ("box", "edge", "┌──────┬──────┐\n│ name │ size │\n└──────┴──────┘ ▓▒░ → ⇒ ≠ ≤ ∑"),
    ("mixed", "edge", "Der Fehler «E0502» tritt in `foo()` auf: 借用检查 failed — см. строку 42 (日本語)."),
]


def load(name, ranks):
    original = public.load_tiktoken_bpe
    if ranks:
        public.load_tiktoken_bpe = lambda _, expected_hash: load_tiktoken_bpe(f"{ranks}/{name}.tiktoken", expected_hash)
    try:
        return tiktoken.Encoding(**getattr(public, name)())
    finally:
        public.load_tiktoken_bpe = original


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", help="folder with the rank files")
    parser.add_argument("--count", action="store_true", help="count the texts on standard input")
    arguments = parser.parse_args()
    encodings = [load(name, arguments.ranks) for name in ("cl100k_base", "o200k_base")]

    def counts(text):
        return [len(encoding.encode_ordinary(text)) for encoding in encodings]

    if arguments.count:
        json.dump([counts(text) for text in json.load(sys.stdin)], sys.stdout)
        return
    rows = []
    for name, kind, text in SAMPLES:
        cl100k, o200k = counts(text)
        rows.append({"name": name, "kind": kind, "cl100k_base": cl100k, "o200k_base": o200k, "text": text})
    print("[")
    print(",\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    print("]")


if __name__ == "__main__":
    main()
