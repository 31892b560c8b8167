package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// share uploads the files and shares them in the channels that have the message.
// See https://api.slack.com/methods/files.getUploadURLExternal.
func (k *service) share(ctx context.Context, c *notifier.Client, files []*notifier.Attachment, arrived []arrival) error {
	if len(arrived) == 0 {
		return nil
	}
	for i, f := range files {
		id, err := notifier.OnceValue(c.Steps, fmt.Sprint("upload ", i), func() (string, error) { return k.upload(ctx, c, f) })
		if err != nil {
			return fmt.Errorf("sending file %d of %d: %w", i+1, len(files), err)
		}
		for _, to := range arrived {
			err := c.Steps.Once(fmt.Sprint("share ", i, " ", to.target), func() error {
				var answer response
				q := k.api("files.completeUploadExternal")
				p := map[string]any{"channel_id": to.channel, "files": []any{map[string]string{"id": id, "title": f.Name}}}
				if to.thread != "" {
					p["thread_ts"] = to.thread
				}
				q.Body = notifier.JSON(p)
				if err := c.DoJSON(ctx, q, &answer); err != nil {
					return err
				}
				return answer.check()
			})
			if err != nil {
				return fmt.Errorf("sharing file %d of %d: %w", i+1, len(files), err)
			}
		}
	}
	return nil
}

// upload uploads a file and returns its id.
func (k *service) upload(ctx context.Context, c *notifier.Client, f *notifier.Attachment) (string, error) {
	var answer struct {
		response
		UploadURL string `json:"upload_url"`
		FileID    string `json:"file_id"`
	}
	q := k.api("files.getUploadURLExternal")
	q.Method, q.Body = "GET", notifier.JSON(struct{}{})
	q.Query = notifier.Fields("filename", f.Name, "length", fmt.Sprint(f.Size))
	if err := c.DoJSON(ctx, q, &answer); err != nil {
		return "", err
	}
	if err := answer.check(); err != nil {
		return "", err
	}
	if !strings.HasPrefix(answer.UploadURL, "https://") || answer.FileID == "" {
		return "", errors.New("Slack did not return an address for the upload")
	}
	q = k.api("")
	q.URL, q.Body = answer.UploadURL, notifier.Multipart(notifier.FormPart{Name: "file", File: f, NoType: true})
	_, err := c.Do(ctx, q)
	return answer.FileID, err
}
