package console

import (
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// A page that lacks something because the Caddyfile does not turn it on says which line brings it.

// lacksQueue returns the line that turns on the queue, or nothing if it is on. does says what it does.
func (h *shared) lacksQueue(does string) []view.CopiedLine {
	if h.Has.Queue {
		return nil
	}
	return []view.CopiedLine{{Name: "the line for the queue", Text: "queue", Note: does + " with this line in the global option notify:"}}
}

// lacksTitles returns the line with which the list of messages has more.
func (h *shared) lacksTitles() []view.CopiedLine {
	if h.Resolved.Titles || h.Resolved.HasInboxes() || !h.Has.Queue {
		return h.lacksQueue("Messages are kept over restarts, and tried again until they are delivered,")
	}
	return []view.CopiedLine{{
		Name: "the line for titles", Text: "titles on",
		Note: "Messages have their titles here, and are found by them, with this line in the global option notify:",
	}}
}

// lacksInbox returns the line with which the texts of a key can be read.
func (h *shared) lacksInbox(k *site.Key) []view.CopiedLine {
	where := "the key " + k.Name
	if k.Saved {
		where = "configs"
	}
	return append(h.lacksQueue("Messages are kept over restarts"), view.CopiedLine{
		Name: "the line for an inbox", Text: "inbox 7d",
		Note: "The texts of the last week can be read here, and with the apps of ntfy, with this line in " + where + ":",
	})
}

// lacksRule returns the line with which incidents are remembered.
func (h *shared) lacksRule() []view.CopiedLine {
	return append(h.lacksQueue("Rules are possible"), view.CopiedLine{
		Name: "the line for a rule", Text: "rate 30/1m",
		Note: "With a rule in a key, such as this line, the gateway remembers what is open, since when, who was told and who is " +
			"next, and lists it here:",
	})
}

// lacksKeys returns the lines with which keys are made here, and their health is remembered.
func (h *shared) lacksKeys(mayAdd bool) []view.CopiedLine {
	lacks := h.lacksQueue("Health is remembered over restarts, and what cannot be delivered waits and is tried again,")
	if mayAdd {
		return lacks
	}
	manage := "manage"
	if m := h.Resolved.Managers; m != nil && m.Open {
		manage += " open"
	} else if m != nil {
		manage = strings.Join(append([]string{manage}, m.Named...), " ")
	}
	line := view.CopiedLine{Name: "the line for keys of this page", Text: manage, Note: "Keys can be made here with this line in configs:"}
	if h.Saved == nil {
		line.Text, line.Note = "configs {\n\t"+manage+"\n}", "Keys can be made here with these lines in the block notify of this site:"
	}
	return append(lacks, line)
}

// lacksPush returns the lines with which phones and browsers are destinations.
func (h *shared) lacksPush(r *http.Request) []view.CopiedLine {
	lines := []string{"push"}
	if !h.Has.Queue {
		lines = []string{"queue", "push"}
	}
	if !strings.HasPrefix(h.Resolved.PublicURL, "https://") {
		public := "https://alerts.example.com"
		if scheme, host := httpapi.SiteAddress(r); scheme == "https" {
			public = scheme + "://" + host + httpapi.StrippedPrefix(r)
		}
		lines = append(lines, "public_url "+public)
	}
	return []view.CopiedLine{{
		Name: "the lines for phones and browsers", Text: strings.Join(lines, "\n"),
		Note: "It takes these lines in the global option notify, and public_url is an address of this site with HTTPS that the phone trusts:",
	}}
}
