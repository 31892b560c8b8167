package services

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/linxGnu/gosmpp/data"
	gosmpp "github.com/linxGnu/gosmpp/pdu"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// What a person must repair is refused at once, so that somebody learns of it while the
// message is new: a wrong password in a queue would wait for a day. What passes by itself is
// tried again: a server that is busy must cost no message.
const (
	final   = false
	retried = true
)

func checkTemporary(t *testing.T, r notifier.Result, want bool, text string) {
	t.Helper()
	if r.Err == nil || r.Temporary != want || !strings.Contains(r.Err.Error(), text) {
		t.Errorf("retried: %v, want %v; %v, want %q", r.Temporary, want, r.Err, text)
	}
}

// TestDeniedByAnswer has the answers of HTTP services.
func TestDeniedByAnswer(t *testing.T) {
	const mm = "matrix://bob:secret@example.org/!room:example.org?discovery=no"
	for name, c := range map[string]struct {
		url    string
		status int
		answer string
		want   bool
	}{
		"Gotify, wrong token":       {"gotify://example.org/tok3n", 401, `{"error":"Unauthorized"}`, final},
		"Gotify, starting":          {"gotify://example.org/tok3n", 503, ``, retried},
		"Matrix, wrong password":    {mm, 403, `{"errcode":"M_FORBIDDEN","error":"Invalid username or password"}`, final},
		"Matrix, too many attempts": {mm, 429, `{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":600000}`, retried},
		"Matrix, unknown token": {
			"matrix://tok3n@example.org/!room:example.org?discovery=no",
			401, `{"errcode":"M_UNKNOWN_TOKEN","error":"x"}`, final,
		},
		"Matrix, down":             {mm, 502, ``, retried},
		"Slack, wrong token":       {"slack://xoxb-1234-1234-abc124/ops", 200, `{"ok":false,"error":"invalid_auth"}`, final},
		"Slack, revoked token":     {"slack://xoxb-1234-1234-abc124/ops", 200, `{"ok":false,"error":"token_revoked"}`, final},
		"Slack, no such channel":   {"slack://xoxb-1234-1234-abc124/ops", 200, `{"ok":false,"error":"channel_not_found"}`, final},
		"Slack, a limit":           {"slack://xoxb-1234-1234-abc124/ops", 200, `{"ok":false,"error":"ratelimited"}`, retried},
		"Slack, an error of Slack": {"slack://xoxb-1234-1234-abc124/ops", 200, `{"ok":false,"error":"internal_error"}`, retried},
		"Telegram, wrong token": {
			"tgram://123456789:abcdefg_hijklmnop/12315544", 401, `{"ok":false,"description":"Unauthorized"}`, final,
		},
		"Telegram, a limit": {
			"tgram://123456789:abcdefg_hijklmnop/12315544", 429,
			`{"ok":false,"parameters":{"retry_after":600}}`, retried,
		},
		"DingTalk, wrong token": {"dingtalk://tok3ntok3n", 200, `{"errcode":300001,"errmsg":"token is not exist"}`, final},
		"DingTalk, a limit":     {"dingtalk://tok3ntok3n", 200, `{"errcode":130101,"errmsg":"send too fast"}`, retried},
		"WeCom Bot, wrong key":  {"wecombot://botkey", 200, `{"errcode":93000,"errmsg":"invalid webhook url"}`, final},
		"WeCom Bot, a limit":    {"wecombot://botkey", 200, `{"errcode":45009,"errmsg":"api freq out of limit"}`, retried},
		"WeCom, wrong secret":   {"wechat://corpid:secret@1000002/@all", 200, `{"errcode":40001,"errmsg":"invalid credential"}`, final},
		"WeCom, busy":           {"wechat://corpid:secret@1000002/@all", 200, `{"errcode":-1,"errmsg":"system busy"}`, retried},
		"Lark, wrong token": {
			"lark://abcdef", 200,
			`{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}`, final,
		},
		"Lark, a limit":               {"lark://abcdef", 200, `{"code":11232,"msg":"frequency limited"}`, retried},
		"Feishu, a limit":             {"feishu://abcdef", 200, `{"code":11232,"msg":"frequency limited"}`, retried},
		"Viber, wrong token":          {"viber://tok3n/abc", 200, `{"status":2,"status_message":"invalidAuthToken"}`, final},
		"Viber, a limit":              {"viber://tok3n/abc", 200, `{"status":12,"status_message":"tooManyRequests"}`, retried},
		"Reddit, wrong password":      {"reddit://user:password@app_id/app_secret/sub", 200, `{"error":"invalid_grant"}`, final},
		"Reddit, wrong app":           {"reddit://user:password@app_id/app_secret/sub", 401, `{"message":"Unauthorized","error":401}`, final},
		"Rocket.Chat, wrong password": {"rocket://user:password@example.org/#ops", 200, `{"status":"error","message":"Unauthorized"}`, final},
		"Rocket.Chat, starting":       {"rocket://user:password@example.org/#ops", 503, ``, retried},
		"FCM, unknown device":         {"fcm://apikey/device", 200, `{"failure":1,"results":[{"error":"NotRegistered"}]}`, final},
		"FCM, busy":                   {"fcm://apikey/device", 200, `{"failure":1,"results":[{"error":"Unavailable"}]}`, retried},
		"Office 365, wrong secret": {
			"azure://ann@example.org/tenant-1/client-1/secret/bob@example.net",
			401, `{"error":"invalid_client"}`, final,
		},
		"Office 365, wrong grant": {
			"azure://ann@example.org/tenant-1/client-1/secret/bob@example.net",
			400, `{"error":"invalid_grant"}`, final,
		},
		"Office 365, busy": {
			"azure://ann@example.org/tenant-1/client-1/secret/bob@example.net",
			503, `{"error":"temporarily_unavailable"}`, retried,
		},
		"Bluesky, wrong password": {
			"bluesky://ann@app-pass-word", 401,
			`{"error":"AuthenticationRequired","message":"Invalid identifier or password"}`, final,
		},
		"Twist, wrong password":        {"twist://secret:user@example.org", 401, `{"error_code":108}`, final},
		"Twist, a token that never is": {"twist://secret:user@example.org", 403, `{"error_code":120}`, final},
		"Vonage, wrong secret": {
			"vonage://abcd1234:secret0secret0ab@15551234567/15557654321", 200,
			`{"messages":[{"status":"4","error-text":"Bad Credentials"}]}`, final,
		},
		"Vonage, a limit": {
			"vonage://abcd1234:secret0secret0ab@15551234567/15557654321", 200,
			`{"messages":[{"status":"1","error-text":"Throughput Rate Exceeded"}]}`, retried,
		},
		"VoIP.ms, wrong password": {
			"voipms://password:user@example.org/15551234567/15557654321",
			200, `{"status":"invalid_credentials"}`, final,
		},
		"VoIP.ms, maintenance": {
			"voipms://password:user@example.org/15551234567/15557654321",
			200, `{"status":"api_in_maintenance"}`, retried,
		},
		"Splunk On-Call, an own failure": {
			"splunk://routekey@11111111-1111-1111-1111-111111111111",
			200, `{"result":"failure","message":"try again"}`, retried,
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := servicetest.API(func(*http.Request, string) (int, string) { return c.status, c.answer })
			report := service.Report(t,
				c.url+map[bool]string{true: "&", false: "?"}[strings.Contains(c.url, "?")]+"store=no",
				&notifier.Message{Body: "x"})
			checkTemporary(t, report.Results[0], c.want, "")
		})
	}
}

// tcpScript starts a server that says the first text at once, and each other one after it
// has read something. It closes the connection after the last.
func tcpScript(t *testing.T, texts ...string) (address string) {
	t.Helper()
	return servicetest.Serve(t, "", nil, func(conn net.Conn) {
		buffer := make([]byte, 64<<10)
		for i, text := range texts {
			if i > 0 {
				if _, err := conn.Read(buffer); err != nil {
					return
				}
			}
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
		_, _ = conn.Read(buffer) // the client's last word
	}).Addr()
}

// TestDeniedByServer has the answers of servers that are spoken to without HTTP.
func TestDeniedByServer(t *testing.T) {
	t.Parallel()
	const (
		stream = `<?xml version='1.0'?><stream:stream xmlns='jabber:client' ` +
			`xmlns:stream='http://etherx.jabber.org/streams' id='1' from='example.org' version='1.0'>` +
			`<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1</mechanism></mechanisms></stream:features>`
		failed = `<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>`
	)
	xmpp := func(failure string) []string {
		return []string{"", stream, failed + failure + "</failure></stream:stream>"}
	}
	irc := func(lines ...string) []string { return []string{"", strings.Join(lines, "\r\n") + "\r\n"} }
	const welcome = ":irc.local 001 bob :Welcome"
	notice := func(text string) []string {
		return []string{"", welcome + "\r\n", ":NickServ!s@services NOTICE bob :" + text + "\r\n"}
	}
	smtp := func(answer string) []string {
		return []string{"220 mx\r\n", "250-mx\r\n250 AUTH PLAIN\r\n", answer + "\r\n"}
	}
	rcpt := func(answer string) []string {
		return []string{"220 mx\r\n", "250 mx\r\n", "250 sender\r\n", answer + "\r\n", "250 reset\r\n"}
	}
	for name, c := range map[string]struct {
		url    string // {} is the server
		script []string
		want   bool
		text   string
	}{
		"XMPP, wrong password": {
			"xmpp://bob%40example.org:secret@{}/ann@example.org?mode=none",
			xmpp(`<not-authorized/>`), final, "not-authorized",
		},
		"XMPP, wrong password, a text": {
			"xmpp://bob%40example.org:secret@{}/ann@example.org?mode=none",
			xmpp(`<not-authorized/><text>Unable to authorize you.</text>`), final, "Unable to authorize you",
		},
		"XMPP, account disabled": {
			"xmpp://bob%40example.org:secret@{}/ann@example.org?mode=none",
			xmpp(`<account-disabled/>`), final, "account-disabled",
		},
		"XMPP, for now": {
			"xmpp://bob%40example.org:secret@{}/ann@example.org?mode=none",
			xmpp(`<temporary-auth-failure/>`), retried, "temporary-auth-failure",
		},
		"XMPP, for now, a text": {
			"xmpp://bob%40example.org:secret@{}/ann@example.org?mode=none",
			xmpp(`<temporary-auth-failure/><text>not-authorized yet</text>`), retried, "yet",
		},
		"IRC, wrong password":      {"irc://bob:secret@{}/ann", irc(":irc.local 464 bob :Password incorrect"), final, "464"},
		"IRC, only a closing word": {"irc://bob:secret@{}/ann", irc("ERROR :Access denied: Bad server password"), final, "Bad server password"},
		"IRC, closed for load":     {"irc://bob:secret@{}/ann", irc("ERROR :Closing Link: too many connections"), retried, "too many"},
		"IRC, banned for now":      {"irc://bob:secret@{}/ann", irc(":irc.local 465 bob :You are banned for an hour"), retried, "465"},
		"IRC, all nicknames in use": {"irc://bob:secret@{}/ann", []string{
			"", ":i 433 * bob :in use\r\n", ":i 433 * x :in use\r\n", ":i 433 * y :in use\r\n", ":i 433 * z :in use\r\n",
		}, retried, "in use"},
		"IRC, NickServ, wrong password": {
			"irc://bob:secret@{}/ann?mode=nickserv", notice("Invalid password for bob."), final, "Invalid password",
		},
		"IRC, NickServ is away": {
			"irc://bob:secret@{}/ann?mode=nickserv",
			[]string{"", welcome + "\r\n", ":irc.local 401 bob NickServ :No such nick/channel\r\n"},
			retried, "401",
		},
		"MQTT, wrong password": {"mqtt://bob:secret@{}/a", []string{"", "\x20\x02\x00\x04"}, final, "unknown format"},
		"MQTT, not authorized": {"mqtt://bob:secret@{}/a", []string{"", "\x20\x02\x00\x05"}, final, "not authorised"},
		"MQTT, not available":  {"mqtt://bob:secret@{}/a", []string{"", "\x20\x02\x00\x03"}, retried, "unavailable"},
		"MQTT 5, wrong password": {
			"mqtt://bob:secret@{}/a?version=5",
			[]string{"", "\x20\x03\x00\x86\x00"},
			final, "Bad User Name or Password",
		},
		"MQTT 5, not authorized":       {"mqtt://bob:secret@{}/a?version=5", []string{"", "\x20\x03\x00\x87\x00"}, final, "authorized"},
		"MQTT 5, busy":                 {"mqtt://bob:secret@{}/a?version=5", []string{"", "\x20\x03\x00\x89\x00"}, retried, "busy"},
		"MQTT 5, too many connections": {"mqtt://bob:secret@{}/a?version=5", []string{"", "\x20\x03\x00\x9f\x00"}, retried, "rate"},
		"SMTP, wrong password": {
			"mailto://bob:secret@{}?mode=insecure&from=bob@example.org&to=ann@example.org",
			smtp("535 5.7.8 Authentication credentials invalid"), final, "535",
		},
		"SMTP, for now": {
			"mailto://bob:secret@{}?mode=insecure&from=bob@example.org&to=ann@example.org",
			smtp("454 4.7.0 Temporary authentication failure"), retried, "454",
		},
		"SMTP, no way to sign in": {
			"mailto://bob:secret@{}?mode=insecure&from=bob@example.org&to=ann@example.org",
			[]string{"220 mx\r\n", "250 mx\r\n"},
			final, "signing in",
		},
		"SMTP, no such mailbox": {
			"mailto://{}?mode=insecure&from=bob@example.org&to=ann@example.org",
			rcpt("550 5.1.1 No such user"), final, "550",
		},
		"SMTP, a limit for today": {
			"mailto://{}?mode=insecure&from=bob@example.org&to=ann@example.org",
			rcpt("550 5.4.5 Daily user sending limit exceeded"), retried, "limit",
		},
		"SMTP, greylisted": {
			"mailto://{}?mode=insecure&from=bob@example.org&to=ann@example.org",
			rcpt("451 4.7.1 Try again later"), retried, "451",
		},
		"Growl, wrong password": {
			"growl://secret@{}",
			[]string{"", "GNTP/1.0 -ERROR NONE\r\nError-Code: 400\r\nError-Description: no\r\n\r\n"},
			final, "password",
		},
		"Growl, busy": {
			"growl://secret@{}",
			[]string{"", "GNTP/1.0 -ERROR NONE\r\nError-Code: 500\r\nError-Description: busy\r\n\r\n"},
			retried, "busy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := strings.ReplaceAll(c.url, "{}", tcpScript(t, c.script...))
			report := servicetest.Report(t, servicetest.NewSender(t), url, &notifier.Message{Title: "x", Body: "x"}, 20*time.Second)
			checkTemporary(t, report.Results[0], c.want, c.text)
		})
	}
	for status, want := range map[data.CommandStatusType]bool{
		data.ESME_RINVPASWD: final, data.ESME_RINVSYSID: final, data.ESME_RSYSERR: retried, data.ESME_RTHROTTLED: retried,
	} {
		t.Run("SMPP, "+status.String(), func(t *testing.T) {
			t.Parallel()
			url := smppScript(t, func(_, _ int, p gosmpp.PDU) []gosmpp.PDU { return []gosmpp.PDU{smppAnswer(p, status)} })
			report := servicetest.Report(t, servicetest.NewSender(t), url, &notifier.Message{Body: "x"}, 20*time.Second)
			checkTemporary(t, report.Results[0], want, status.String())
		})
	}
}
