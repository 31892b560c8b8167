package services

import (
	"cmp"
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[spugpush]()

// spugpush sends to the channels of a template of Spug Push.
type spugpush struct{ token string }

func (p *spugpush) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SpugPush", "https://docs.spug.dev/push/"
	s.Setup = "Create a message template in Spug Push and copy its push URL, whose last part is the token."
	s.Groups(notifier.GroupPhone, notifier.GroupRegional)
	s.Words("推送助手", "spug", "china")
	s.URL("spugpush://{token}")
	s.Native("https://push.spug.dev/send/{token}")
	s.Secret(&p.token, "token", "code of the template").Match(`^[a-z0-9_-]{32,64}$`).Example("abc123def456ghi789jkl012mno345pq")
}

func (p *spugpush) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return checkedDo(ctx, c, &notifier.Request{
		URL:  "https://push.spug.dev/send" + notifier.Path(p.token),
		Body: notifier.JSON(map[string]string{"title": cmp.Or(m.Title, m.Body), "content": m.Body}),
	}, "code", "msg", 0, 200)
}
