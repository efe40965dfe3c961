use super::check;

#[test]
fn chinese() {
    check(&[
        ("不对，是另一个文件。", "correction"),
        ("错了，端口是8081", "correction"),
        ("我的意思是第二段", "correction"),
        ("改成列表", "correction request"),
        ("用制表符，而不是空格", "correction preference"),
        ("还是不行", "correction"),
        ("不要修改配置文件", "prohibition correction"),
        ("别用表情符号", "prohibition"),
        ("请勿提交到主分支", "prohibition"),
        ("千万别删除数据", "prohibition"),
        ("避免使用全局变量", "prohibition"),
        ("以后都用中文回答", "preference"),
        ("我更喜欢简短的回答", "preference"),
        ("确保测试通过", "preference"),
        ("我叫李明", "fact"),
        ("我住在杭州", "fact"),
        ("我们使用Postgres 15", "fact"),
        ("我女儿对花生过敏", "fact"),
        ("会议推迟到星期二", "change"),
        ("我们不再使用Jenkins", "change"),
        ("帮我写一个排序函数", "request"),
        ("请添加一个测试", "request"),
        ("缓存是怎么工作的？", "question !request"),
        ("接下来做支付页面", "goal"),
        ("好的，继续", "approval"),
        ("谢谢！", "talk !correction"),
        ("没问题", "!prohibition !correction"),
        ("添加一个测试", "request !prohibition !correction"),
    ]);
}

#[test]
fn japanese() {
    check(&[
        ("いいえ、別のファイルです。", "correction denial"),
        ("違います、ポートは8081です", "correction"),
        ("二番目の段落という意味です", "correction"),
        ("スペースではなくタブを使ってください", "correction request"),
        ("やっぱりリストのほうがいいです", "correction"),
        ("まだ動きません", "correction"),
        (
            "設定ファイルを変更しないでください",
            "prohibition correction !request",
        ),
        ("絵文字は使わないで", "prohibition"),
        ("mainにプッシュしてはいけません", "prohibition"),
        ("グローバル変数は避けてください", "prohibition"),
        ("データを消すのは禁止です", "prohibition"),
        ("今後は日本語で答えてください", "preference"),
        ("短い回答の方が好きです", "preference"),
        ("必ずテストを実行してください", "preference request"),
        ("私の名前は佐藤です", "fact"),
        ("札幌に住んでいます", "fact"),
        ("Postgres 15を使っています", "fact"),
        ("娘はナッツアレルギーです", "fact"),
        ("会議は火曜日に延期になりました", "change"),
        ("もうJenkinsは使っていません、今はGitLabです", "change"),
        ("並べ替えの関数を書いてください", "request"),
        ("テストを追加してもらえますか？", "request question"),
        ("キャッシュはどうやって動きますか？", "question !request"),
        ("次は支払いページです", "goal"),
        ("はい、進めてください", "approval"),
        ("ありがとうございます！", "talk !correction"),
        ("テストを追加して", "request !prohibition !correction"),
        ("了解です", "approval !correction"),
    ]);
}
