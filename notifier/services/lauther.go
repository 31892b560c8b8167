package services

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[lauther]()

// lauther pushes to the phones of a Lauther account.
type lauther struct {
	token, priority                         string
	sound, click, icon, color, group, route string
}

func (l *lauther) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Lauther", "https://lauther.app/"
	s.Setup = "Create a push token, which begins with lpt_, in the Lauther app."
	s.Groups(notifier.GroupPhone)
	s.URL("lauther://{token}")
	s.Hints(notifier.Hint{Text: `(?<token>lpt_[A-Za-z0-9]{6,})`, Is: "a push token"})
	s.Limits.Body = 2000
	s.Secret(&l.token, "token", "push token").Match(`^lpt_[a-z0-9]+$`).Example("lpt_AbCdEf0123456789")
	s.String(&l.priority, "priority", "0", "lowest, low, normal, high or emergency, or a number from -2 to 2").
		Normalize(lautherPriority).Lenient().Example("high")
	s.String(&l.sound, "sound", "", "name of the sound").Example("default")
	s.String(&l.click, "click", "", "address to open").Example("https://example.com")
	s.String(&l.icon, "icon", "", "address of the icon").Example("https://example.com/icon.png")
	s.String(&l.color, "color", "", "colour of the message").Example("red")
	s.String(&l.group, "group", "", "group that the message is shown in").Example("backup")
	s.String(&l.route, "route", "", "path in the app to open").Example("/alerts")
}

// lautherPriorities are the numbers of priorities with a name.
var lautherPriorities = map[string]string{
	"lowest": "-2", "low": "-1", "normal": "0", "high": "1", "highest": "1", "emergency": "2",
}

// lautherPriority returns the number of a priority. Finish checks the range: a number
// outside it makes the URL unusable, and an unknown word does not.
func lautherPriority(s string) (string, error) {
	if number := lautherPriorities[strings.ToLower(s)]; number != "" {
		return number, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return "", errors.New("must be lowest, low, normal, high, emergency or a number from -2 to 2")
	}
	return strconv.Itoa(n), nil
}

func (l *lauther) Finish(*notifier.Schema) error {
	if n, err := strconv.Atoi(l.priority); err != nil || n < -2 || n > 2 {
		return errors.New("priority must be a number from -2 to 2, or lowest, low, normal, high or emergency")
	}
	return nil
}

func (l *lauther) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	priority, err := strconv.Atoi(l.priority)
	if err != nil {
		return err
	}
	payload := omitEmpty(map[string]any{
		"sound": l.sound, "url": l.click, "icon": l.icon, "color": l.color, "tag": l.group, "path": l.route,
	})
	payload["title"], payload["message"], payload["priority"] = m.Title, m.Body, priority
	_, err = c.Do(ctx, &notifier.Request{
		URL: "https://api.lauther.id/v1/push", Header: map[string]string{"Authorization": "Bearer " + l.token},
		Body:   notifier.JSON(payload),
		Accept: func(code int) bool { return code == http.StatusOK },
	})
	return err
}
