//go:build linux

package main

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"strings"
	"time"
)

// sizes measures the memory for large messages.
func (b *bench) sizes() error {
	files := make([]string, 10)
	for i := range files {
		files[i] = fmt.Sprintf("form%s/file/%d", strings.TrimPrefix(b.dest.plain.url, "http"), i)
	}
	c, err := b.start(siteConfig{keys: b.dest.plain.key("texts", "/hold", 10) + keyOf("files", files...)})
	if err != nil {
		return err
	}
	defer c.stop()
	var held, idle, peak []float64
	for range b.rounds {
		n, err := b.holdText(c)
		if err != nil {
			return err
		}
		held = append(held, n)
	}
	fmt.Printf("\na text of 1 MiB to ten destinations, none of which has answered: %.1f MiB in use\n", median(held)/(1<<20))
	form, kind, err := largeForm()
	if err != nil {
		return err
	}
	for range b.rounds {
		if _, err := c.heap(); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		idle = append(idle, c.memory("VmRSS"))
		if err := c.resetPeak(); err != nil {
			return err
		}
		if err := post("http://"+c.gateway+"/notify/files", kind, bytes.NewReader(form)); err != nil {
			return err
		}
		peak = append(peak, c.memory("VmHWM"))
	}
	fmt.Printf("a file of 50 MiB to ten destinations: %.1f MiB resident above %.1f\n", median(peak)-median(idle), median(idle))
	if n := int(b.dest.large.Load()); n != 10*b.rounds {
		return fmt.Errorf("%d of %d files have arrived", n, 10*b.rounds)
	}
	return nil
}

// holdText sends a text of 1 MiB to ten destinations that do not answer, and
// returns the increase of the bytes in use.
func (b *bench) holdText(c *process) (float64, error) {
	before, err := c.heap()
	if err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	go func() {
		sent <- post("http://"+c.gateway+"/notify/texts", "text/plain", strings.NewReader(strings.Repeat("0123456789abcde\n", 1<<16)))
	}()
	for b.dest.held.Load() < 10 {
		select {
		case err := <-sent:
			return 0, fmt.Errorf("a text of 1 MiB: %w", err)
		case <-time.After(time.Millisecond):
		}
	}
	if _, err := c.heap(); err != nil { // two collections empty the pools
		return 0, err
	}
	after, err := c.heap()
	for range 10 {
		b.dest.release <- struct{}{}
	}
	if err != nil {
		return 0, err
	}
	return after - before, <-sent
}

// largeForm returns a form with a file of 50 MiB, and its content type.
func largeForm() (form []byte, kind string, err error) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	if err := w.WriteField("body", "see attached"); err != nil {
		return nil, "", err
	}
	part, err := w.CreateFormFile("attach", "disk.img")
	if err != nil {
		return nil, "", err
	}
	if _, err := part.Write(make([]byte, largeRequest)); err != nil {
		return nil, "", err
	}
	err = w.Close()
	return buf.Bytes(), w.FormDataContentType(), err
}
