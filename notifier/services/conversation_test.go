package services

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// A Mastodon server attaches up to four pictures or one other file to a post, and
// each upload only once.
func TestMastodonConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		unused := map[string]string{} // names by id
		return func(q *http.Request, body string) (int, string) {
			var in struct {
				Status string
				Media  []string `json:"media_ids"`
			}
			_ = json.Unmarshal([]byte(body), &in)
			switch {
			case q.Header.Get("Authorization") != "Bearer tok3n":
				return 401, `{"error":"The access token is invalid"}`
			case q.URL.Path == "/api/v1/accounts/verify_credentials":
				return 200, `{"username":"ann"}`
			case q.URL.Path == "/api/v1/media":
				f := servicetest.FormFields(q, body)
				if f.Get("file") != string(servicetest.Picture) {
					return 422, `{"error":"Validation failed: File can't be blank"}`
				}
				id := "m" + f.Get("description")
				unused[id] = f.Get("description")
				return 200, fmt.Sprintf(`{"id":%q}`, id)
			case in.Status == "" && in.Media == nil:
				return 422, `{"error":"Validation failed: Text can't be blank"}`
			case len(in.Media) > 4:
				return 422, `{"error":"Cannot attach more than 4 files"}`
			}
			for _, id := range in.Media {
				switch {
				case unused[id] == "":
					return 422, `{"error":"Validation failed: Media not found"}`
				case len(in.Media) > 1 && strings.HasSuffix(id, ".mp4"):
					return 422, `{"error":"Cannot attach a video to a post that already contains images"}`
				}
				delete(unused, id)
			}
			note("%s %s", strings.Fields(in.Status)[0], in.Media)
			return 200, `{"id":"1"}`
		}
	}, []servicetest.Conversation{
		{Name: "direct", URL: "mastodon://tok3n@example.org?visibility=direct", Want: []string{"@ann []"}},
		{
			Name: "pictures", URL: "toot://tok3n@example.org", Files: strings.Fields("1.png 2.jpg 3.png 4.png 5.png"),
			Want: []string{"02/02 [m5.png]", "Disk [m1.png m2.jpg m3.png m4.png]"},
		},
		{
			Name: "a video among pictures", URL: "toot://tok3n@example.org", Files: strings.Fields("1.png 2.mp4 3.png"),
			Want: []string{"02/03 [m2.mp4]", "03/03 [m3.png]", "Disk [m1.png]"},
		},
		{Name: "a revoked token", URL: "mastodon://old@example.org", Err: "The access token is invalid"},
	})
}

// X has two users. A picture can be attached only to the kind of post that it was
// uploaded for.
func TestTwitterConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		ids, uploads := map[string]string{"ann": "1", "bob": "2"}, map[string]string{}
		return func(q *http.Request, body string) (int, string) {
			var in struct {
				Text        string
				Media       struct{ Media_IDs []string }
				Attachments []struct{ Media_ID string }
			}
			_ = json.Unmarshal([]byte(body), &in)
			if !oauth1Signed(q, "csecret", "asecret") {
				return 401, `{"title":"Unauthorized"}`
			}
			switch q.URL.Path {
			case "/2/users/me":
				return 200, `{"data":{"id":"9","username":"me"}}`
			case "/2/users/by":
				var found []map[string]string
				for name := range strings.SplitSeq(q.URL.Query().Get("usernames"), ",") {
					if ids[name] != "" {
						found = append(found, map[string]string{"id": ids[name], "username": name})
					}
				}
				answer, _ := json.Marshal(map[string]any{"data": found})
				return 200, string(answer)
			case "/2/media/upload":
				f, id := servicetest.FormFields(q, body), fmt.Sprint("m", len(uploads))
				if f.Get("media") != string(servicetest.Picture) {
					return 400, `{"title":"Invalid Request"}`
				}
				uploads[id] = f.Get("media_category")
				return 200, fmt.Sprintf(`{"data":{"id":%q}}`, id)
			}
			purpose, media := "tweet_image", in.Media.Media_IDs
			if q.URL.Path != "/2/tweets" {
				purpose = "dm_image"
				for _, a := range in.Attachments {
					media = append(media, a.Media_ID)
				}
			}
			for _, id := range media {
				if uploads[id] != purpose || len(media) > 4 {
					return 400, `{"detail":"Your media IDs are invalid."}`
				}
			}
			note("%s %.4s %s", strings.TrimPrefix(q.URL.Path, "/2/"), in.Text, media)
			return 201, `{"data":{"id":"1"}}`
		}
	}, []servicetest.Conversation{
		{Name: "to the account itself", URL: "twitter://ckey/csecret/akey/asecret", Want: []string{"dm_conversations/with/9/messages Disk []"}},
		{
			Name: "to users, with a picture", URL: "twitter://ann@ckey/csecret/akey/asecret/bob", Files: []string{"1.png"},
			Want: []string{"dm_conversations/with/1/messages Disk [m0]", "dm_conversations/with/2/messages Disk [m0]"},
		},
		{
			Name: "in public", URL: "tweet://ckey/csecret/akey/asecret", Files: strings.Fields("1.png 2.png 3.png 4.png 5.png"),
			Want: []string{"tweets 02/0 [m4]", "tweets Disk [m0 m1 m2 m3]"},
		},
		{Name: "to an unknown user", URL: "twitter://ckey/csecret/akey/asecret/eve", Err: "knows none of them"},
		{Name: "a wrong secret", URL: "tweet://ckey/csecret/akey/wrong", Err: "401 Unauthorized"},
	})
}

// oauth1Signed reports whether the signature of a request without a form is
// valid (RFC 5849, section 3.4).
func oauth1Signed(q *http.Request, secret, tokenSecret string) bool {
	head, ok := strings.CutPrefix(q.Header.Get("Authorization"), "OAuth ")
	params, signature := q.URL.Query(), ""
	for part := range strings.SplitSeq(head, ", ") {
		name, value, _ := strings.Cut(part, "=")
		value, _ = url.PathUnescape(strings.Trim(value, `"`))
		if name == "oauth_signature" {
			signature = value
			continue
		}
		params.Set(name, value)
	}
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	base := q.Method + "&" + escape("https://"+q.URL.Host+q.URL.Path) + "&" + escape(strings.ReplaceAll(params.Encode(), "+", "%20"))
	mac := hmac.New(sha1.New, []byte(secret+"&"+tokenSecret))
	mac.Write([]byte(base))
	return ok && signature == base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Amazon checks the signature and the time of a request. A topic must exist before
// a message is published to it.
func TestSNSConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		topics := map[string]bool{}
		return func(q *http.Request, body string) (int, string) {
			if !awsSigned(q, body, "SE/CRET", "sns") {
				return 403, "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>"
			}
			form, _ := url.ParseQuery(body)
			if form.Get("Action") == "CreateTopic" {
				arn := "arn:aws:sns:us-east-1:1:" + form.Get("Name")
				topics[arn] = true
				return 200, "<CreateTopicResponse><CreateTopicResult><TopicArn>" + arn + "</TopicArn></CreateTopicResult></CreateTopicResponse>"
			}
			if arn := form.Get("TopicArn"); arn != "" && !topics[arn] {
				return 404, "<ErrorResponse><Error><Code>NotFound</Code></Error></ErrorResponse>"
			}
			note("%s%s %s", form.Get("PhoneNumber"), form.Get("TopicArn"), form.Get("Subject"))
			return 200, "<PublishResponse/>"
		}
	}, []servicetest.Conversation{
		{Name: "to a topic", URL: "sns://KEY/SE/CRET/us-east-1/#ops", Want: []string{"arn:aws:sns:us-east-1:1:ops Disk almost full"}},
		{
			Name: "to a telephone number, with a session token",
			URL:  "sns://token@KEY/SE/CRET/us-east-1/15551112222", Want: []string{"+15551112222 "},
		},
		{Name: "a wrong secret", URL: "sns://KEY/WRONG/us-east-1/#ops", Err: "SignatureDoesNotMatch"},
	})
}

// Amazon checks the signature of a request and accepts only verified senders.
func TestSESConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		return func(q *http.Request, body string) (int, string) {
			form, _ := url.ParseQuery(body)
			switch {
			case !awsSigned(q, body, "SE/CRET", "ses"):
				return 403, "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>"
			case !strings.HasSuffix(form.Get("Source"), "<ops@example.com>"):
				return 400, "<ErrorResponse><Error><Code>MessageRejected</Code></Error></ErrorResponse>"
			}
			note("%s", form.Get("Destinations.member.1"))
			return 200, "<SendRawEmailResponse/>"
		}
	}, []servicetest.Conversation{
		{
			Name: "two mails", URL: "ses://ops@example.com/KEY/SE/CRET/us-east-1/a@example.com/b@example.com", Message: "attach",
			Want: []string{"a@example.com", "b@example.com"},
		},
		{Name: "an unverified sender", URL: "ses://eve@example.com/KEY/SE/CRET/us-east-1", Err: "MessageRejected"},
		{Name: "a wrong secret", URL: "ses://ops@example.com/KEY/WRONG/us-east-1", Err: "SignatureDoesNotMatch"},
	})
}

// awsSigned reports whether the signature of a POST is valid and at most 15
// minutes old (Signature Version 4).
func awsSigned(q *http.Request, body, secret, service string) bool {
	var scope, names, signature string
	head := strings.NewReplacer("AWS4-HMAC-SHA256 Credential=KEY/", "",
		" SignedHeaders=", "", " Signature=", "").Replace(q.Header.Get("Authorization"))
	if f := strings.Split(head, ","); len(f) == 3 {
		scope, names, signature = f[0], f[1], f[2]
	}
	at, err := time.Parse("20060102T150405Z", q.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute || scope != at.Format("20060102")+"/us-east-1/"+service+"/aws4_request" {
		return false
	}
	// The session token must be signed.
	if q.Header.Get("X-Amz-Security-Token") != "" && !strings.Contains(names, "x-amz-security-token") {
		return false
	}
	lines := "POST\n/\n\n"
	for name := range strings.SplitSeq(names, ";") {
		value := q.Header.Get(name)
		if name == "host" {
			value = q.URL.Host
		}
		lines += name + ":" + value + "\n"
	}
	digest := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	text := "AWS4-HMAC-SHA256\n" + q.Header.Get("X-Amz-Date") + "\n" + scope + "\n" + digest(lines+"\n"+names+"\n"+digest(body))
	key := "AWS4" + secret
	for part := range strings.SplitSeq(scope+"/"+text, "/") {
		if strings.HasPrefix(part, "aws4_request") {
			break
		}
		key = hmacSum(key, part)
	}
	return signature == fmt.Sprintf("%x", hmacSum(hmacSum(key, "aws4_request"), text))
}

func hmacSum(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return string(mac.Sum(nil))
}

// Bluesky accepts posts with pictures that were uploaded before.
func TestBlueskyConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		blobs := map[string]bool{}
		return func(q *http.Request, body string) (int, string) {
			var in struct {
				Password string
				Record   struct {
					Text  string
					Embed struct {
						Images []struct{ Image struct{ Ref string } }
					}
				}
			}
			_ = json.Unmarshal([]byte(body), &in)
			switch q.URL.Host + " " + strings.TrimPrefix(q.URL.Path, "/xrpc/com.atproto.") {
			case "public.api.bsky.app identity.resolveHandle":
				if q.URL.Query().Get("handle") != "ann.bsky.social" {
					return 400, `{"error":"InvalidRequest","message":"Unable to resolve handle"}`
				}
				return 200, `{"did":"did:plc:ann"}`
			case "plc.directory /did:plc:ann":
				return 200, `{"service":[{"type":"AtprotoPersonalDataServer","serviceEndpoint":"https://pds.example.org"}]}`
			case "pds.example.org server.createSession":
				if in.Password != "app-password" {
					return 401, `{"error":"AuthenticationRequired"}`
				}
				return 200, `{"accessJwt":"tok3n"}`
			}
			if q.URL.Host != "pds.example.org" || q.Header.Get("Authorization") != "Bearer tok3n" {
				return 401, `{"error":"AuthMissing"}`
			}
			if strings.HasSuffix(q.URL.Path, "uploadBlob") {
				id := fmt.Sprint("b", len(blobs))
				blobs[id] = body == string(servicetest.Picture) && q.Header.Get("Content-Type") == "image/png"
				return 200, fmt.Sprintf(`{"blob":{"ref":%q}}`, id)
			}
			shown := ""
			for _, i := range in.Record.Embed.Images {
				if shown += " " + i.Image.Ref; !blobs[i.Image.Ref] {
					return 400, `{"error":"InvalidRequest","message":"Could not find blob"}`
				}
			}
			note("%.5s%s", in.Record.Text, shown)
			return 200, `{}`
		}
	}, []servicetest.Conversation{
		{Name: "pictures", URL: "bsky://ann@app-password", Files: strings.Fields("1.png 2.png"), Want: []string{"02/02 b1", "Disk  b0"}},
		{Name: "an unknown handle", URL: "bsky://eve@app-password", Err: "Unable to resolve handle"},
		{Name: "a wrong password", URL: "bsky://ann@wrong", Err: "signing in"},
	})
}

// Webex accepts messages with at most one file, for rooms that the bot is in.
func TestWebexConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		return func(q *http.Request, body string) (int, string) {
			var in struct{ RoomID, Markdown string }
			files := []string(nil)
			if json.Unmarshal([]byte(body), &in) != nil {
				f := servicetest.FormFields(q, body)
				in.RoomID, in.Markdown, files = f.Get("roomId"), f.Get("markdown"), f["files"]
			}
			switch {
			case q.Header.Get("Authorization") != "Bearer tok3n":
				return 401, `{"message":"The request requires a valid access token set in the Authorization request header."}`
			case in.RoomID != "ops" && in.RoomID != "dev":
				return 404, `{"message":"Could not find a room with provided ID."}`
			case len(files) > 1 || in.Markdown == "" && len(files) == 0:
				return 400, `{"message":"Number of files exceeds the limit."}`
			}
			note("%s %.6s %d", in.RoomID, in.Markdown, len(files))
			return 200, `{}`
		}
	}, []servicetest.Conversation{
		{Name: "to two rooms", URL: "webex://tok3n/ops/dev", Want: []string{"dev # Disk 0", "ops # Disk 0"}},
		{Name: "files", URL: "webex://tok3n/ops", Files: strings.Fields("1.png 2.png"), Want: []string{"ops  1", "ops # Disk 1"}},
		{Name: "an unknown room", URL: "webex://tok3n/ops/gone", Err: "Could not find a room", Want: []string{"ops # Disk 0"}},
		{Name: "an expired token", URL: "webex://old/ops", Err: "valid access token"},
	})
}

// A Nextcloud server has three users, one group and an administrator.
func TestNextcloudConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		return func(q *http.Request, body string) (int, string) {
			user, password, _ := q.BasicAuth()
			form, _ := url.ParseQuery(body)
			switch {
			case q.Header.Get("OCS-APIRequest") != "true":
				return 412, "CSRF check failed"
			case user != "admin" || password != "pa55word":
				return 401, `{"ocs":{"meta":{"statuscode":997,"message":"Current user is not logged in"}}}`
			case q.URL.Path == "/ocs/v1.php/cloud/groups/ops":
				return 200, `{"ocs":{"meta":{"statuscode":100},"data":{"users":["ann","bob"]}}}`
			case q.URL.Path == "/ocs/v1.php/cloud/users":
				return 200, `{"ocs":{"meta":{"statuscode":100},"data":{"users":["ann","bob","cay"]}}}`
			case strings.HasPrefix(q.URL.Path, "/ocs/v1.php/"):
				return 200, `{"ocs":{"meta":{"statuscode":404,"message":"Group could not be found"},"data":[]}}`
			}
			name := q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]
			if form.Get("shortMessage") == "" || !slices.Contains([]string{"ann", "bob", "cay"}, name) {
				return 404, `{"ocs":{"meta":{"statuscode":404,"message":""}}}`
			}
			note("%s", name)
			return 200, `{}`
		}
	}, []servicetest.Conversation{
		{Name: "a group and one of its members", URL: "ncloud://admin:pa55word@example.org/#ops/ann", Want: []string{"ann", "bob"}},
		{Name: "everybody", URL: "ncloud://admin:pa55word@example.org/all", Want: []string{"ann", "bob", "cay"}},
		{Name: "an unknown group", URL: "ncloud://admin:pa55word@example.org/#gone", Err: "Group could not be found"},
		{Name: "an unknown user", URL: "ncloud://admin:pa55word@example.org/eve/ann", Err: "404 Not Found", Want: []string{"ann"}},
		{Name: "a wrong password", URL: "ncloud://admin:wrong@example.org/ann", Err: "401 Unauthorized"},
	})
}

// A Signal server has one account, which is in one group.
func TestSignalConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		return func(q *http.Request, body string) (int, string) {
			var in struct {
				Number      string
				Recipients  []string
				Attachments [][]byte `json:"base64_attachments"`
			}
			if err := json.Unmarshal([]byte(body), &in); err != nil {
				return 400, `{"error":"Couldn't process request - invalid request"}`
			}
			if in.Number != "+15551230000" {
				return 400, `{"error":"Specified account does not exist"}`
			}
			for _, r := range in.Recipients {
				if strings.HasPrefix(r, "group.") && r != "group.b3Bz" || !strings.HasPrefix(r, "group.") && r[0] != '+' {
					return 400, `{"error":"Invalid group id"}`
				}
			}
			for _, a := range in.Attachments {
				if string(a) != string(servicetest.Picture) {
					return 400, `{"error":"invalid attachment"}`
				}
			}
			note("%s %d", in.Recipients, len(in.Attachments))
			return 201, `{"timestamp":"1"}`
		}
	}, []servicetest.Conversation{
		{
			Name: "a number and a group", URL: "signal://example.org/15551230000/15551112222/@b3Bz",
			Files: []string{"1.png"}, Want: []string{"[+15551112222] 1", "[group.b3Bz] 1"},
		},
		{
			Name: "in one request", URL: "signal://example.org/15551230000/15551112222/@b3Bz?batch=yes",
			Want: []string{"[+15551112222 group.b3Bz] 0"},
		},
		{
			Name: "a group without the account", URL: "signal://example.org/15551230000/@Z29uZQ/15551112222",
			Err: "Invalid group id", Want: []string{"[+15551112222] 0"},
		},
		{Name: "an unknown account", URL: "signal://example.org/15559990000/15551112222", Err: "account does not exist"},
	})
}

// Vonage reports errors in answers with status 200.
func TestVonageConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		credit := 2
		return func(_ *http.Request, body string) (int, string) {
			form, _ := url.ParseQuery(body)
			status, text := "0", ""
			switch {
			case form.Get("api_key") != "k3y" || form.Get("api_secret") != "s3cret":
				status, text = "4", "Bad Credentials"
			case credit == 0:
				status, text = "9", "Quota Exceeded - rejected"
			default:
				credit--
				note("from %s", form.Get("from"))
			}
			return 200, fmt.Sprintf(`{"message-count":"1","messages":[{"status":%q,"error-text":%q}]}`, status, text)
		}
	}, []servicetest.Conversation{
		{Name: "sent", URL: "vonage://k3y:s3cret@15551230000/15551112222", Want: []string{"from 15551230000"}},
		{
			Name: "no credit left", URL: "vonage://k3y:s3cret@15551230000/15551112222/15551113333/15551114444", Err: "Quota Exceeded",
			Want: []string{"from 15551230000", "from 15551230000"},
		},
		{Name: "a wrong secret", URL: "vonage://k3y:wrong@15551230000/15551112222", Err: "Bad Credentials"},
	})
}

// The Threema gateway charges one credit for each message to a known recipient.
func TestThreemaConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		credit := 2
		return func(q *http.Request, _ string) (int, string) {
			in := q.URL.Query()
			switch {
			case in.Get("from") != "*GATEWAY" || in.Get("secret") != "s3cret":
				return 401, ""
			case in.Get("to") == "NOBODY00":
				return 400, ""
			case credit == 0:
				return 402, ""
			default:
				credit--
				for _, kind := range []string{"to", "email", "phone"} {
					if in.Has(kind) {
						note("one by %s", kind)
					}
				}
				return 200, "0123456789abcdef"
			}
		}
	}, []servicetest.Conversation{
		{
			Name: "an ID and a telephone number", URL: "threema://*GATEWAY@s3cret/ECHOECHO/15551112222",
			Want: []string{"one by phone", "one by to"},
		},
		{Name: "an unknown ID", URL: "threema://*GATEWAY@s3cret/NOBODY00/ECHOECHO", Err: "400 Bad Request", Want: []string{"one by to"}},
		{
			Name: "no credit left", URL: "threema://*GATEWAY@s3cret/a@example.org/b@example.org/c@example.org",
			Err: "402 Payment Required", Want: []string{"one by email", "one by email"},
		},
		{Name: "a wrong secret", URL: "threema://*GATEWAY@wrong/ECHOECHO", Err: "401 Unauthorized"},
	})
}

// A Zoom webhook demands a token, and accepts plain text or its own JSON.
func TestZoomConversation(t *testing.T) {
	servicetest.Converse(t, func(note func(string, ...any)) servicetest.API {
		return func(q *http.Request, body string) (int, string) {
			var in struct {
				Content struct {
					Head struct{ Text string }
					Body []struct{ Type, Text string }
				}
			}
			full := q.URL.Query().Get("format") == "full"
			switch {
			case q.URL.Path != "/incoming/hook/h00k":
				return 404, "Not Found"
			case q.Header.Get("Authorization") != "tok3n":
				return 401, "Unauthorized"
			case full && (json.Unmarshal([]byte(body), &in) != nil || len(in.Content.Body) == 0 || in.Content.Body[0].Type != "message"):
				return 400, "Bad Request"
			case full:
				body = in.Content.Head.Text + "; " + in.Content.Body[0].Text
			}
			note("%s", body)
			return 200, ""
		}
	}, []servicetest.Conversation{
		{Name: "full", URL: "zoom://h00k/tok3n", Want: []string{"Disk almost full; Volume /data is at 91% on host-7"}},
		{Name: "simple", URL: "zoom://h00k/tok3n?mode=simple", Want: []string{"Disk almost full: Volume /data is at 91% on host-7"}},
		{Name: "a wrong token", URL: "zoom://h00k/old", Err: "401 Unauthorized"},
		{Name: "an unknown webhook", URL: "zoom://gone/tok3n", Err: "404 Not Found"},
	})
}
