package office365

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/caddy-notify/caddy-notify/notifier"
)

const (
	// maxInline is the maximum size of the files in one request, in base64,
	// which is a third longer. The API accepts requests of 4 MB.
	maxInline = 3 << 20

	// chunkSize is the size of a part of a larger file: a multiple of 320 KiB,
	// below 4 MB.
	chunkSize = 10 * 320 << 10
)

// needsUpload reports whether the files are too large for the request with the
// message.
func needsUpload(files []*notifier.Attachment) bool {
	var size int64
	for _, a := range files {
		size += a.Size
	}
	return size*4/3 > maxInline
}

// sendDraft creates a draft, adds the files to it one by one and sends it. See
// https://learn.microsoft.com/graph/outlook-large-attachments.
func (o *service) sendDraft(
	ctx context.Context, c *notifier.Client, s session, msg message, target string, files []*notifier.Attachment,
) error {
	draft, err := notifier.OnceValue(c.Steps, "draft to "+target, func() (string, error) {
		var answer struct{ ID string }
		err := s.call(ctx, c, "POST", s.mailbox+"/messages", notifier.JSON(msg), &answer)
		if err == nil && answer.ID == "" {
			err = errors.New("the service returned no id of the draft")
		}
		return answer.ID, err
	})
	if err != nil {
		return fmt.Errorf("creating a draft: %w", err)
	}
	address := s.mailbox + notifier.Path("messages", draft)
	for i, a := range files {
		err := c.Steps.Once(fmt.Sprintf("file %d to %s", i, target), func() error { return s.attach(ctx, c, address, a) })
		if err != nil {
			return fmt.Errorf("uploading file %d: %w", i+1, err)
		}
	}
	return s.call(ctx, c, "POST", address+"/send", nil, nil)
}

// attach adds a file to a draft.
func (s session) attach(ctx context.Context, c *notifier.Client, draft string, a *notifier.Attachment) error {
	if a.Size*4/3 <= maxInline {
		return s.call(ctx, c, "POST", draft+"/attachments", notifier.JSON(fileAttachments([]*notifier.Attachment{a})[0], a), nil)
	}
	var upload struct{ UploadURL string }
	err := s.call(ctx, c, "POST", draft+"/attachments/createUploadSession", notifier.JSON(map[string]any{
		"AttachmentItem": map[string]any{"attachmentType": "file", "name": a.Name, "contentType": a.ContentType, "size": a.Size},
	}), &upload)
	if err == nil && upload.UploadURL == "" {
		err = errors.New("the service returned no address for the upload")
	}
	if err != nil {
		return err
	}
	file := a.Open()
	for at := int64(0); at < a.Size; {
		chunk := make([]byte, min(chunkSize, a.Size-at))
		n, err := io.ReadFull(file, chunk)
		if err != nil {
			return fmt.Errorf("reading attachment: %w", err)
		}
		// The address carries the permission. The service refuses a token here.
		_, err = c.Do(ctx, &notifier.Request{
			Method: "PUT", URL: upload.UploadURL,
			Header: map[string]string{"Content-Range": fmt.Sprintf("bytes %d-%d/%d", at, at+int64(n)-1, a.Size)},
			Body:   notifier.Bytes("application/octet-stream", chunk),
		})
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}
