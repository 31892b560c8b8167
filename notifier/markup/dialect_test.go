package markup

import (
	"testing"
	"time"
)

func TestReferences(t *testing.T) {
	zone := time.FixedZone("CEST", 2*60*60)
	for _, tt := range []struct {
		dialect    Dialect
		text, want string
	}{
		{DialectSlack, "<!channel> disk full", "@channel disk full"},
		{DialectSlack, "<!here|here> and <!everyone>", "@here and @everyone"},
		{DialectSlack, "<@U024BE7LH> <@U024BE7LH|bob> <#C024BE7LR|general> <#C024BE7LR>", "@U024BE7LH @bob #general #C024BE7LR"},
		{DialectSlack, "<!subteam^SAZ94GDB8> <!subteam^SAZ94GDB8|@oncall>", "@SAZ94GDB8 @oncall"},
		{DialectSlack, "since <!date^1618953630^{date} at {time}|20 April>", "since 20 April"},
		{DialectSlack, "since <!date^1618953630^{date_num}>", "since 2021-04-20 23:20 CEST"},
		{DialectSlack, "`<!here>` and ```\n<@U1>\n``` <!here>", "<!here> and\n<@U1>\n@here"},
		{DialectSlack, "a < b > c <b> <https://example.net>", "a < b > c <b> https://example.net"},
		{DialectSlack, "<!", "<!"},
		{DialectSlack, "&lt;!here&gt; <!here>", "<!here> @here"},

		{DialectDiscord, "<t:1618953630:R> <t:1618953630> <t:1618953630:f>", "2021-04-20 23:20 CEST 2021-04-20 23:20 CEST 2021-04-20 23:20 CEST"},
		{DialectDiscord, "<t:1618953630:t> <t:1618953630:T> <t:1618953630:d> <t:1618953630:D>", "23:20 CEST 23:20:30 CEST 2021-04-20 2021-04-20"},
		{
			DialectDiscord, "<t:1618953630:F> <t:1618953630:S> <t:1618953630:s>",
			"Tuesday, 2021-04-20 23:20 CEST 2021-04-20 23:20:30 CEST 2021-04-20 23:20 CEST",
		},
		{DialectDiscord, "<t:99999999999999999:R> <t:-5:R> <t:1618953630:x>", "99999999999999999 -5 <t:1618953630:x>"},
		{
			DialectDiscord,
			"<@80351110224678912> <@!80351110224678912> <@&165511591545143296> <#103735883630395392>",
			"@80351110224678912 @80351110224678912 @165511591545143296 #103735883630395392",
		},
		{
			DialectDiscord,
			"<:disk_full:216154654256398347> <a:party:1> </airhorn add:816437322781949972> <id:customize>",
			":disk_full: :party: /airhorn add #customize",
		},
		{DialectDiscord, `\<@1> <@1>`, `<@1> @1`},
		{DialectDiscord, "`<@1>` @here <@&x>", "<@1> @here <@&x>"},

		{"", "<@1> <!here>", "<@1> <!here>"},
	} {
		if got := tt.dialect.Convert(tt.text, Text, zone); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.dialect, tt.text, got, tt.want)
		}
	}
}
