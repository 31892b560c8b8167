package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[nextcloud]()

// nextcloud notifies users of a Nextcloud server as an administrator.
type nextcloud struct {
	nextcloudServer
	version              int
	names, users, groups []string
}

func (n *nextcloud) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Nextcloud", "https://github.com/nextcloud/notifications/blob/master/docs/admin-notifications.md"
	s.Setup = "Create an app password under Settings, Security of an administrator of the server, and use it as the password."
	s.Groups(notifier.GroupPhone)
	s.Words("owncloud")
	s.URL("ncloud[s]://[{user}[:{password}]@]{host}[:{port}]/{targets...}")
	n.describe(s)
	s.Int(&n.version, "version", 21, "major version of the server").Range(1, 1000)
	s.List(&n.names, "targets", "users, #groups, or all",
		notifier.Prefixed{Prefix: "#", Items: &n.groups, Doc: "group; all of its members are notified"},
		notifier.Prefixed{Prefix: "@", Items: &n.users, Doc: "user"}).Alias("to").Match(`^([@#]?[\w.@'-]+|#?\*)$`).Example("alice")
	s.Param("host").Example("cloud.example.com")
	s.Param("user").Example("admin")
	s.Param("password").Example("app-password")
}

func (n *nextcloud) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	users := slices.Clone(n.users)
	for _, name := range n.names {
		if !nextcloudEveryone(name) {
			users = append(users, name)
			continue
		}
		members, err := n.members(ctx, c, "users")
		if err != nil {
			return err
		}
		users = append(users, members...)
	}
	// Members are looked up for each message, so that new ones are included.
	for _, group := range n.groups {
		path := "groups/" + url.PathEscape(group)
		if nextcloudEveryone(group) {
			path = "users"
		}
		members, err := n.members(ctx, c, path)
		if err != nil {
			return err
		}
		users = append(users, members...)
	}
	if len(users) == 0 {
		return errors.New("the groups in the URL have no members")
	}
	slices.Sort(users)
	title := m.Title
	if title == "" {
		title = m.Identity.Description
	}
	form := notifier.Fields("shortMessage", title)
	if m.Body != "" {
		form.Set("longMessage", m.Body)
	}
	path := "/ocs/v2.php/apps/notifications/api/v2/admin_notifications/"
	if n.version < 21 {
		path = "/ocs/v2.php/apps/admin_notifications/api/v1/notifications/"
	}
	return c.Steps.Each(ctx, slices.Compact(users), func(ctx context.Context, user string) error {
		_, err := c.Do(ctx, n.request(path+url.PathEscape(user), notifier.Form(form)))
		return err
	})
}

func nextcloudEveryone(name string) bool {
	return name == "*" || strings.EqualFold(name, "all") || strings.EqualFold(name, "everyone")
}

// members returns the users listed at a path of the provisioning API.
func (n *nextcloud) members(ctx context.Context, c *notifier.Client, path string) ([]string, error) {
	q := n.request("/ocs/v1.php/cloud/"+path, nil)
	q.Query = notifier.Fields("format", "json")
	var answer struct {
		OCS struct {
			Meta struct {
				StatusCode int
				Message    string
			}
			Data json.RawMessage
		}
	}
	if err := c.DoJSON(ctx, q, &answer); err != nil {
		return nil, fmt.Errorf("looking up users: %w", err)
	}
	if code := answer.OCS.Meta.StatusCode; code >= 300 {
		err := fmt.Errorf("looking up users: the service answered %d %s", code, answer.OCS.Meta.Message)
		if code == 404 || code == 997 || code == 998 { // 997: not authorized; 998: unknown
			err = notifier.Denied(err)
		}
		return nil, err
	}
	var data struct{ Users []string }
	if err := json.Unmarshal(answer.OCS.Data, &data); err != nil {
		return nil, errors.New("looking up users: the service's answer has no list of users")
	}
	return data.Users, nil
}
