package office365

import (
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// message is the resource type message of the Graph API.
type message struct {
	Subject      string           `json:"subject"`
	Body         itemBody         `json:"body"`
	From         *recipient       `json:"from,omitempty"`
	ReplyTo      []recipient      `json:"replyTo,omitempty"`
	ToRecipients []recipient      `json:"toRecipients"`
	CC           []recipient      `json:"ccRecipients,omitempty"`
	BCC          []recipient      `json:"bccRecipients,omitempty"`
	Attachments  []fileAttachment `json:"attachments,omitempty"`
}

type itemBody struct {
	Type    string `json:"contentType"`
	Content string `json:"content"`
}

type recipient struct {
	Mailbox emailAddress `json:"emailAddress"`
}

type emailAddress struct {
	Address string `json:"address"`
	Name    string `json:"name,omitempty"`
}

type fileAttachment struct {
	Kind    string `json:"@odata.type"`
	Name    string `json:"name"`
	Type    string `json:"contentType"`
	Content string `json:"contentBytes"`
}

func recipients(list []mail.Address) (out []recipient) {
	for _, m := range list {
		out = append(out, recipient{emailAddress{m.Address, m.Name}})
	}
	return out
}

func fileAttachments(files []*notifier.Attachment) (out []fileAttachment) {
	for _, a := range files {
		out = append(out, fileAttachment{"#microsoft.graph.fileAttachment", a.Name, a.ContentType, notifier.Base64(a)})
	}
	return out
}
