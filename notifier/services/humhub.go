package services

import (
	"context"
	"errors"
	"strconv"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[humhub]()

// humhub posts to spaces and profiles of a HumHub server.
type humhub struct {
	notifier.Server
	token   string
	targets []string
}

func (h *humhub) Describe(s *notifier.Schema) {
	s.Name, s.Site = "HumHub", "https://marketplace.humhub.com/module/rest/docs/html/post.html"
	s.Setup = "An administrator installs the REST API module of HumHub, whose settings offer bearer " +
		"tokens and passwords; targets are IDs of content containers, that is spaces and users."
	s.Groups(notifier.GroupChat, notifier.GroupSocial)
	s.Words("intranet")
	s.URL("humhub[s]://{token}@{host}[:{port}]/{targets...}", "humhub[s]://{user}:{password}@{host}[:{port}]/{targets...}")
	s.Way(1, "with a token")
	s.Way(2, "with a user name and a password")
	s.Limits = markup.Limits{Body: 4000}
	// A mention is a link: [name](mention:id).
	s.Foreign = &notifier.ForeignText{Markdown: true}
	s.Attachments = true
	s.Server(&h.Server)
	s.Secret(&h.token, "token", "bearer token, instead of user and password").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.List(&h.targets, "targets", "IDs of content containers: spaces or users").Alias("to").Normalize(humhubContainer).Example("1")
	s.Param("host").Example("humhub.example.com")
	s.Param("user").Example("alice")
	s.Param("password").Example("pa55word")
}

// humhubContainer checks the ID of a content container.
func humhubContainer(s string) (string, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return "", errors.New("must be a whole number of at least 1")
	}
	return strconv.Itoa(n), nil
}

func (h *humhub) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, h.targets, func(ctx context.Context, container string) error {
		post, err := notifier.OnceValue(c.Steps, "post in "+container, func() (int, error) {
			var answer struct{ ID int }
			err := h.call(ctx, c, notifier.JSON(map[string]any{"data": map[string]string{"message": m.Body}}), &answer,
				"api", "v1", "post", "container", container)
			return answer.ID, err
		})
		if err != nil || len(m.Attachments) == 0 {
			return err
		}
		if post == 0 {
			return errors.New("the answer has no ID of the post, so the files cannot be added to it")
		}
		number := strconv.Itoa(post)
		for i, a := range m.Attachments {
			err := c.Steps.Once("file "+strconv.Itoa(i)+" of "+number, func() error {
				return h.call(ctx, c, notifier.Multipart(notifier.FormPart{Name: "files[]", File: a, NoType: true}), nil,
					"api", "v1", "post", number, "upload-files")
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// call posts body and reads the JSON answer into answer.
func (h *humhub) call(ctx context.Context, c *notifier.Client, body *notifier.Body, answer any, path ...string) error {
	q := &notifier.Request{URL: h.URL(path...), Login: &h.Server, Body: body}
	if h.token != "" {
		q.Header = map[string]string{"Authorization": "Bearer " + h.token}
	}
	return c.DoJSON(ctx, q, answer)
}
