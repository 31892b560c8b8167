package services_test

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// A destination has as many recipients as messages are sent to: chats, numbers,
// addresses, topics. Tags, mentions and paths are none.
func TestRecipients(t *testing.T) {
	for url, want := range map[string]int{
		"json://h/a/b/c": 1,
		"tgram://123456789:abcdefghijklmnopqrstuvwxyz0123456/1/2/3":                                           3,
		"mailto://me:secret@example.com?to=a@example.com,b@example.com":                                       2,
		"mailto://me:secret@example.com?to=a@example.com&cc=b@example.com,c@example.com":                      3,
		"mailto://me:secret@example.com?to=a@example.com,b@example.com&bcc=c@example.com&reply=d@example.com": 4,
		"ntfy://h/one/two?tags=a,b,c":                                    2,
		"ntfy://topic":                                                   1,
		"mqtt://h/alerts/disk":                                           1,
		"mqtt://h/alerts/disk,alerts/net?to=x":                           3,
		"line://token=/u1,u2/u3":                                         3,
		"pagertree://int_0123456789?tags=a,b,c":                          1,
		"discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js?ping=@a,@b":   1,
		"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/%23a/%23b": 2,
	} {
		d, err := notifier.Parse(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if n := d.Recipients(); n != want {
			t.Errorf("%s: %d recipients, want %d", url, n, want)
		}
	}
}
