package services

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[wechat]()

// wechat sends as an application of a company in WeCom (WeChat Work).
type wechat struct {
	corp        string
	secret      string
	agent       int
	users       []string
	departments []string
	tags        []string
	token       notifier.Cached[string]
}

func (w *wechat) Describe(s *notifier.Schema) {
	s.Name, s.Site = "WeChat (WeCom)", "https://developer.work.weixin.qq.com/document/path/90236"
	s.Setup = "The company ID is in the company information of the WeCom admin console, " +
		"and AgentId and Secret are on the page of the application under App Management."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("企业微信", "wechat work", "weixin", "tencent", "china")
	s.URL("wechat://{user}:{password}@{host}[/{targets...}]")
	s.Limits = markup.Limits{Body: 2048}
	// A text can have links: <a href="…">.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs, Mentions: chattext.BreakMarkup}
	s.String(&w.corp, "user", "", "ID of the company").Example("ww1a2b3c4d5e6f7890")
	s.Secret(&w.secret, "password", "secret of the application").Example("Gz5kXv0tq7Jm3Wc9Rb1Ls8Yd4Pf6Hn2Ae0Uo5Ti7KwQ")
	s.Int(&w.agent, "host", 0, "ID of the application (AgentId)").Example("1000002").Range(0, 1<<31-1)
	s.List(&w.users, "targets", "users; @all for everybody",
		notifier.Prefixed{Prefix: "#", Items: &w.departments, Doc: "department"},
		notifier.Prefixed{Prefix: "+", Items: &w.tags, Doc: "tag"}).Alias("to").Normalize(wechatTarget).Example("@all")
}

var wechatTargetPattern = lazyregexp.New(`^(@?[A-Za-z0-9][A-Za-z0-9_@.-]*|[#+][0-9]+)$`)

// wechatTarget checks a recipient. A user may have a leading @.
func wechatTarget(s string) (string, error) {
	if !wechatTargetPattern.MatchString(s) {
		return "", errors.New("is not a user, a #department or a +tag")
	}
	if s = strings.TrimPrefix(s, "@"); s == "all" {
		s = "@all"
	}
	return s, nil
}

func (w *wechat) Finish(*notifier.Schema) error {
	if len(w.users)+len(w.departments)+len(w.tags) == 0 {
		return errors.New("the URL has no targets; add /@all, a user, a #department (written %23) or a +tag")
	}
	return nil
}

func (w *wechat) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	kind := "text"
	if m.Format == notifier.Markdown {
		kind = "markdown"
	}
	payload := map[string]any{"agentid": w.agent, "msgtype": kind, kind: map[string]string{"content": m.Body}}
	for field, ids := range map[string][]string{"touser": w.users, "toparty": w.departments, "totag": w.tags} {
		if len(ids) > 0 {
			payload[field] = strings.Join(ids, "|")
		}
	}
	for first := true; ; first = false {
		token, err := w.token.Get(ctx, notifier.Saved(c, savedToken, func(ctx context.Context) (string, time.Duration, error) {
			return w.signIn(ctx, c)
		}))
		if err != nil {
			return err
		}
		var answer wechatAnswer
		err = c.DoJSON(ctx, &notifier.Request{
			URL:   "https://qyapi.weixin.qq.com/cgi-bin/message/send",
			Query: notifier.Fields("access_token", token),
			Body:  notifier.JSON(payload),
		}, &answer)
		if err != nil || answer.Code == 0 {
			return err
		}
		if !slices.Contains(wechatExpired, answer.Code) {
			return unlessBusy(refusedError(answer.Code, answer.Text), wechatBusy...)
		}
		w.token.DropSaved(ctx, c, savedToken)
		if !first {
			return unlessBusy(refusedError(answer.Code, answer.Text), wechatBusy...)
		}
	}
}

// savedToken is the name of the state that keeps an access token over a restart,
// for services that limit how often they give one out.
const savedToken = "token"

// wechatExpired are the error codes for an invalid or expired access token.
var wechatExpired = []int{40001, 40014, 42001}

// wechatBusy are the error codes for a service that is busy, too many messages and too many
// of them at once.
var wechatBusy = []int{-1, 45009, 45033}

type wechatAnswer struct {
	Code  int    `json:"errcode"`
	Text  string `json:"errmsg"`
	Token string `json:"access_token"`
	Life  int    `json:"expires_in"` // seconds
}

// signIn gets an access token.
func (w *wechat) signIn(ctx context.Context, c *notifier.Client) (string, time.Duration, error) {
	var answer wechatAnswer
	err := c.DoJSON(ctx, &notifier.Request{
		URL:   "https://qyapi.weixin.qq.com/cgi-bin/gettoken",
		Query: notifier.Fields("corpid", w.corp, "corpsecret", w.secret),
	}, &answer)
	switch {
	case err != nil:
		return "", 0, err
	case answer.Code != 0:
		return "", 0, unlessBusy(refusedError(answer.Code, answer.Text), wechatBusy...)
	case answer.Token == "":
		return "", 0, errors.New("the service returned no access token")
	}
	return answer.Token, time.Duration(answer.Life) * time.Second, nil
}
