package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// newMailGateway runs a gateway with a mail server on which every client needs an
// account. It returns the server's port and the destination of the key ops.
func newMailGateway(t *testing.T) (port int, hook *webhook) {
	t.Helper()
	caddy, err := buildGateway()
	if err != nil {
		t.Fatal(err)
	}
	hook, port = newWebhook(t), freePort(t)
	cert, key := authority.certificate(t)
	hash, err := exec.Command(caddy, "hash-password", "--bcrypt-cost", "4", "--plaintext", "tray 2 &%").Output()
	if err != nil {
		t.Fatal(err)
	}
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		key ops {
			url %s
			url %s disk
			default_tag untagged
		}
		smtp 127.0.0.1:%d {
			tls %s %s
			auth {
				nas %s
			}
			trusted_clients none
		}
	}
}
`, hook.to("/ops"), hook.to("/disk"), port, cert, key, hash))
	return port, hook
}

// TestMailClients sends mails with common mail clients for scripts.
func TestMailClients(t *testing.T) {
	port, hook := newMailGateway(t)
	check := func(t *testing.T, path, title, text, typ string) {
		t.Helper()
		if got := hook.take(t, path); got.Title != title || got.Message != text || got.Type != typ {
			t.Errorf("got %+v", got)
		}
	}

	t.Run("swaks", func(t *testing.T) {
		swaks := func(args ...string) (string, error) {
			out, err := exec.Command(program(t, "swaks", "swaks"), append([]string{
				"--server", "127.0.0.1", "--port", fmt.Sprint(port), "--from", "nas@example.com", "--helo", "nas.example.com",
			}, args...)...).CombinedOutput()
			return string(out), err
		}
		if out, err := swaks("--to", "ops@x", "--body", "x"); err == nil || !strings.Contains(out, "530 5.7.0") {
			t.Errorf("without an account: %v\n%s", err, out)
		}
		login := []string{"--tls", "--auth-user", "nas", "--auth-password", "tray 2 &%"}
		for _, mechanism := range []string{"PLAIN", "LOGIN"} {
			file := writeFile(t, "scan.txt", "scanned")
			out, err := swaks(append(login, "--auth", mechanism, "--to",
				"ops.failure+disk@localhost", "--header", "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
				"--body", "Seite 1", "--attach-type", "text/plain", "--attach", "@"+file)...)
			if err != nil {
				t.Fatalf("%s: %v\n%s", mechanism, err, out)
			}
			got := hook.take(t, "/disk")
			if got.Title != "Grüße" || got.Message != "Seite 1" || got.Type != "failure" ||
				len(got.Attachments) != 1 || string(got.Attachments[0].Base64) != "scanned" {
				t.Errorf("%s: got %+v", mechanism, got)
			}
		}
		out, err := swaks(append(login, "--auth", "PLAIN", "--to", "ops.failure@localhost",
			"--header", "Subject: ** RECOVERY Host Alert: nas is UP **", "--body", "PING OK")...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		check(t, "/ops", "** RECOVERY Host Alert: nas is UP **", "PING OK", "success")
		if out, err := swaks(append(login, "--auth", "PLAIN", "--to", "none@x")...); err == nil || !strings.Contains(out, "550 5.1.1") {
			t.Errorf("an unknown key: %v\n%s", err, out)
		}
		if out, err := swaks("--tls", "--auth", "PLAIN", "--auth-user", "nas", "--auth-password",
			"tray", "--to", "ops@x"); err == nil || !strings.Contains(out, "535 5.7.8") {
			t.Errorf("a wrong password: %v\n%s", err, out)
		}
	})

	t.Run("msmtp", func(t *testing.T) {
		ca := writeFile(t, "ca.pem", string(authority.pem))
		send := func(to, mail string) (string, error) {
			c := exec.Command(program(t, "msmtp", "msmtp"), "--host=localhost", fmt.Sprintf("--port=%d", port), "--from=root@nas.example.com",
				"--auth=plain", "--user=nas", "--passwordeval=echo 'tray 2 &%'", "--tls=on",
				"--tls-starttls=on", "--tls-trust-file="+ca, "--file=/dev/null", "--", to)
			c.Stdin = strings.NewReader(mail)
			out, err := c.CombinedOutput()
			return string(out), err
		}
		if out, err := send("ops.warning@localhost", "Subject: Cron <root@nas> backup\n\nline one\n.\n..\nlast\n"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		check(t, "/ops", "Cron <root@nas> backup", "line one\n.\n..\nlast", "warning")
		// Scans as printers name them, up to the number of attachments that a message may
		// have, and an invitation as calendars send it.
		for mail, want := range map[string]string{
			"file_names.eml": "Scan 1 of the printer.pdf|Tür #1.pdf|しのみ (1).pdf|Report of " +
				"the whole night, part 1; draft.pdf|Zażółć gęślą.pdf|Rechnung Närz. pdf.pdf",
			"invite_google.eml": "invite.ics",
		} {
			data, err := os.ReadFile("../../gateway/mail/testdata/" + mail)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := send("ops@localhost", string(data)); err != nil {
				t.Fatalf("%s: %v\n%s", mail, err, out)
			}
			var names []string
			for _, a := range hook.take(t, "/ops").Attachments {
				names = append(names, a.Filename)
			}
			if got := strings.Join(names, "|"); got != want {
				t.Errorf("%s: got %s, want %s", mail, got, want)
			}
		}
		if out, err := send("none@localhost", "Subject: x\n\ny\n"); err == nil || !strings.Contains(out, "there is no such key") {
			t.Errorf("an unknown key: %v\n%s", err, out)
		}
	})

	t.Run("smtplib", func(t *testing.T) {
		const script = `
import smtplib, ssl, sys
from email.message import EmailMessage
m = EmailMessage()
m["Subject"] = "Überlauf: 漢字 " + "lang " * 30 + "Ende"
m["From"] = "nas@example.com"
m["To"] = "ops@localhost"
m.set_content("Größe: 91 %\n漢字 😀\n")
m.add_alternative("<p>HTML</p>", subtype="html")
m.add_attachment(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8192, maintype="image", subtype="png", filename="Tür.png")
with smtplib.SMTP("localhost", int(sys.argv[1])) as s:
    s.starttls(context=ssl.create_default_context(cafile=sys.argv[2]))
    s.login("nas", "tray 2 &%")
    s.send_message(m)
    print(s.sendmail("a@x", ["ops@x", "none@x"], "Subject: two\r\n\r\ntext\r\n"))
`
		c := exec.Command(program(t, "python3", "python3"), "-c", script, fmt.Sprint(port), writeFile(t, "ca.pem", string(authority.pem)))
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "'none@x': (550, b'5.1.1") {
			t.Fatalf("%v\n%s", err, out)
		}
		hook.mu.Lock()
		got := hook.got
		hook.got = nil
		hook.mu.Unlock()
		if len(got) != 2 || got[1].Title != "two" {
			t.Fatalf("got %d messages", len(got))
		}
		title := "Überlauf: 漢字 " + strings.Repeat("lang ", 30) + "Ende"
		if m := got[0]; m.Title != title || m.Message != "Größe: 91 %\n漢字 😀" || len(m.Attachments) != 1 ||
			m.Attachments[0].Filename != "Tür.png" || len(m.Attachments[0].Base64) != 8+256*8192 {
			t.Errorf("got %q, %q, %d files", m.Title, m.Message, len(m.Attachments))
		}
	})
}

// TestAlertmanagerMail checks the mails of Alertmanager, which have only HTML: the
// addresses of their links arrive, and the end of an alert is a success although the
// recipient says failure.
func TestAlertmanagerMail(t *testing.T) {
	port, hook := newMailGateway(t)
	address := alertmanager(t, "[alertname]", fmt.Sprintf(`    email_configs:
      - to: ops.failure@localhost
        from: alertmanager@example.com
        smarthost: localhost:%d
        auth_username: nas
        auth_password: 'tray 2 &%%'
        tls_config:
          ca_file: %s
        send_resolved: true
`, port, writeFile(t, "ca.pem", string(authority.pem))))
	arrives := func(typ, title, text string) {
		t.Helper()
		eventually(t, title+" arrives", func() bool {
			hook.mu.Lock()
			defer hook.mu.Unlock()
			for _, p := range hook.got {
				if p.Type == typ && strings.HasPrefix(p.Title, title) && strings.Contains(p.Message, text) {
					return true
				}
			}
			return false
		})
	}
	const link = "View in Alertmanager (http://am.example.net/#/alerts?receiver=gateway)\n"
	postAlerts(t, address, diskAlert("db1", 0))
	arrives("failure", "[FIRING:1] DiskFull (db1 critical)", link+"[1] Firing\nLabels\nalertname = DiskFull\ninstance = db1\n")
	postAlerts(t, address, diskAlert("db1", -time.Second))
	arrives("success", "[RESOLVED] DiskFull (db1 critical)", link+"[1] Resolved\n")
}
