package services

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// conversation is a service that keeps state and refuses what the real one
// refuses, and what is to come of messages to it.
type conversation struct {
	name, url string
	message   string   // default: plain
	files     []string // names
	err       string   // part of the error; "" where the message arrives
	want      []string // what the service has in the end, sorted
}

// hold runs the conversations, each with a new service of its own, which
// notes down what it has by calling the function that it gets.
func hold(t *testing.T, service func(have func(format string, args ...any)) pushService, conversations []conversation) {
	t.Helper()
	for _, x := range conversations {
		t.Run(x.name, func(t *testing.T) {
			var got []string
			f := service(func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) })
			m := message(t, "plain")
			if x.message != "" {
				m = message(t, x.message)
			}
			for _, name := range x.files {
				m.Attachments = append(m.Attachments, notifier.NewAttachment(name, "", pixel))
			}
			err := f.destination(t, x.url)(m)
			if (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
				t.Errorf("the error is %v, want %q", err, x.err)
			}
			if slices.Sort(got); !slices.Equal(got, x.want) {
				t.Errorf("the service has %q, want %q", got, x.want)
			}
		})
	}
}

// fields are those of a form in several parts, files among them.
func fields(q *http.Request, body string) url.Values {
	_, params, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	r, out := multipart.NewReader(strings.NewReader(body), params["boundary"]), url.Values{}
	for {
		p, err := r.NextPart()
		if err != nil {
			return out
		}
		text, _ := io.ReadAll(p)
		out.Add(p.FormName(), string(text))
	}
}

// A Mastodon server attaches what was uploaded and not used, up to four
// pictures or one other file.
func TestMastodonConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
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
				f := fields(q, body)
				if f.Get("file") != string(pixel) {
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
			have("%s %s", strings.Fields(in.Status)[0], in.Media)
			return 200, `{"id":"1"}`
		}
	}, []conversation{
		{name: "direct", url: "mastodon://tok3n@example.org?visibility=direct", want: []string{"@ann []"}},
		{
			name: "pictures", url: "toot://tok3n@example.org", files: strings.Fields("1.png 2.jpg 3.png 4.png 5.png"),
			want: []string{"02/02 [m5.png]", "Disk [m1.png m2.jpg m3.png m4.png]"},
		},
		{
			name: "a video among pictures", url: "toot://tok3n@example.org", files: strings.Fields("1.png 2.mp4 3.png"),
			want: []string{"02/03 [m2.mp4]", "03/03 [m3.png]", "Disk [m1.png]"},
		},
		{name: "a token that was withdrawn", url: "mastodon://old@example.org", err: "The access token is invalid"},
	})
}

// X knows two users, and takes pictures that were uploaded for the purpose.
func TestTwitterConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
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
			switch {
			case q.URL.Path == "/2/users/me":
				return 200, `{"data":{"id":"9","username":"me"}}`
			case q.URL.Path == "/2/users/by":
				var found []map[string]string
				for name := range strings.SplitSeq(q.URL.Query().Get("usernames"), ",") {
					if ids[name] != "" {
						found = append(found, map[string]string{"id": ids[name], "username": name})
					}
				}
				answer, _ := json.Marshal(map[string]any{"data": found})
				return 200, string(answer)
			case q.URL.Path == "/2/media/upload":
				f, id := fields(q, body), fmt.Sprint("m", len(uploads))
				if f.Get("media") != string(pixel) {
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
			have("%s %.4s %s", strings.TrimPrefix(q.URL.Path, "/2/"), in.Text, media)
			return 201, `{"data":{"id":"1"}}`
		}
	}, []conversation{
		{name: "to oneself", url: "twitter://ckey/csecret/akey/asecret", want: []string{"dm_conversations/with/9/messages Disk []"}},
		{
			name: "to users, with a picture", url: "twitter://ann@ckey/csecret/akey/asecret/bob", files: []string{"1.png"},
			want: []string{"dm_conversations/with/1/messages Disk [m0]", "dm_conversations/with/2/messages Disk [m0]"},
		},
		{
			name: "in public", url: "tweet://ckey/csecret/akey/asecret", files: strings.Fields("1.png 2.png 3.png 4.png 5.png"),
			want: []string{"tweets 02/0 [m4]", "tweets Disk [m0 m1 m2 m3]"},
		},
		{name: "to nobody that there is", url: "twitter://ckey/csecret/akey/asecret/eve", err: "knows none of them"},
		{name: "a wrong secret", url: "tweet://ckey/csecret/akey/wrong", err: "401 Unauthorized"},
	})
}

// oauth1Signed checks a signature by RFC 5849, section 3.4, of a request
// without a form.
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

// Amazon checks who has signed a request, and when. A topic must have been
// created before something is published to it.
func TestSNSConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
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
			have("%s%s %s", form.Get("PhoneNumber"), form.Get("TopicArn"), form.Get("Subject"))
			return 200, "<PublishResponse/>"
		}
	}, []conversation{
		{name: "to a topic", url: "sns://KEY/SE/CRET/us-east-1/#ops", want: []string{"arn:aws:sns:us-east-1:1:ops Disk almost full"}},
		{name: "to a telephone, with a session token", url: "sns://token@KEY/SE/CRET/us-east-1/15551112222", want: []string{"+15551112222 "}},
		{name: "a wrong secret", url: "sns://KEY/WRONG/us-east-1/#ops", err: "SignatureDoesNotMatch"},
	})
}

func TestSESConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
		return func(q *http.Request, body string) (int, string) {
			form, _ := url.ParseQuery(body)
			switch {
			case !awsSigned(q, body, "SE/CRET", "ses"):
				return 403, "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>"
			case !strings.HasSuffix(form.Get("Source"), "<ops@example.com>"):
				return 400, "<ErrorResponse><Error><Code>MessageRejected</Code></Error></ErrorResponse>"
			}
			have("%s", form.Get("Destinations.member.1"))
			return 200, "<SendRawEmailResponse/>"
		}
	}, []conversation{
		{
			name: "two mails", url: "ses://ops@example.com/KEY/SE/CRET/us-east-1/a@example.com/b@example.com", message: "attach",
			want: []string{"a@example.com", "b@example.com"},
		},
		{name: "an address that is not ours", url: "ses://eve@example.com/KEY/SE/CRET/us-east-1", err: "MessageRejected"},
		{name: "a wrong secret", url: "ses://ops@example.com/KEY/WRONG/us-east-1", err: "SignatureDoesNotMatch"},
	})
}

// awsSigned checks the signature of a POST (Signature Version 4), which is
// good for 15 minutes.
func awsSigned(q *http.Request, body, secret, service string) bool {
	var scope, names, signature string
	head := strings.NewReplacer("AWS4-HMAC-SHA256 Credential=KEY/", "", " SignedHeaders=", "", " Signature=", "").Replace(q.Header.Get("Authorization"))
	if f := strings.Split(head, ","); len(f) == 3 {
		scope, names, signature = f[0], f[1], f[2]
	}
	at, err := time.Parse("20060102T150405Z", q.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute || scope != at.Format("20060102")+"/us-east-1/"+service+"/aws4_request" {
		return false
	}
	// All that Amazon has of the request must be signed.
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

// A Matrix server takes events for the rooms that the user is in, and shows
// files that it has.
func TestMatrixConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
		rooms, joined, files := map[string]string{
			"#ops:example.org": "!1:example.org", "!2:example.org": "!2:example.org", "!old:example.org": "!old:example.org",
		}, map[string]bool{}, map[string]bool{}
		return func(q *http.Request, body string) (int, string) {
			path := strings.Split(strings.TrimPrefix(q.URL.Path, "/_matrix/client/v3/"), "/")
			var in struct{ Body, URL, Room_Alias_Name string }
			_ = json.Unmarshal([]byte(body), &in)
			switch {
			case q.Header.Get("Authorization") != "Bearer tok3n":
				return 401, `{"errcode":"M_UNKNOWN_TOKEN"}`
			case path[0] == "account":
				return 200, `{"user_id":"@ann:example.org"}`
			case q.URL.Path == "/_matrix/media/v3/upload":
				if body != string(pixel) {
					return 400, `{"errcode":"M_BAD_JSON"}`
				}
				address := "mxc://example.org/" + q.URL.Query().Get("filename")
				files[address] = true
				return 200, fmt.Sprintf(`{"content_uri":%q}`, address)
			case path[0] == "join" && path[1] == "#closed:example.org":
				return 403, `{"errcode":"M_FORBIDDEN","error":"You are not invited to this room."}`
			case path[0] == "join" && rooms[path[1]] == "":
				return 404, `{"errcode":"M_NOT_FOUND"}`
			case path[0] == "join":
				joined[rooms[path[1]]] = true
				return 200, fmt.Sprintf(`{"room_id":%q}`, rooms[path[1]])
			case path[0] == "createRoom":
				have("create %s", in.Room_Alias_Name)
				joined["!new:example.org"] = true
				return 200, `{"room_id":"!new:example.org"}`
			case path[0] == "joined_rooms":
				return 200, `{"joined_rooms":["!old:example.org"]}`
			case path[0] != "rooms" || !joined[path[1]]:
				return 403, `{"errcode":"M_FORBIDDEN","error":"User not in room."}`
			case in.URL != "" && !files[in.URL]:
				return 404, `{"errcode":"M_NOT_FOUND"}`
			}
			have("%s %.6s%s", path[1], in.Body, in.URL)
			return 200, `{"event_id":"$1"}`
		}
	}, []conversation{
		{
			name: "an alias and an id, with a file", url: "matrix://tok3n@example.org/#ops/!2", files: []string{"1.png"},
			want: []string{
				"!1:example.org # Disk", "!1:example.org 1.pngmxc://example.org/1.png",
				"!2:example.org # Disk", "!2:example.org 1.pngmxc://example.org/1.png",
			},
		},
		{name: "an alias that nobody has", url: "matrix://tok3n@example.org/#new", want: []string{"!new:example.org # Disk", "create new"}},
		{name: "all rooms", url: "matrix://tok3n@example.org?mode=off", want: []string{"!old:example.org # Disk"}},
		{name: "a closed room keeps no other from it", url: "matrix://tok3n@example.org/#closed/#ops", err: "not invited", want: []string{"!1:example.org # Disk"}},
		{name: "a token that was withdrawn", url: "matrix://old@example.org/#ops", err: "M_UNKNOWN_TOKEN"},
	})
}

// Bluesky shows pictures that were uploaded in a session.
func TestBlueskyConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
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
				blobs[id] = body == string(pixel) && q.Header.Get("Content-Type") == "image/png"
				return 200, fmt.Sprintf(`{"blob":{"ref":%q}}`, id)
			}
			shown := ""
			for _, i := range in.Record.Embed.Images {
				if shown += " " + i.Image.Ref; !blobs[i.Image.Ref] {
					return 400, `{"error":"InvalidRequest","message":"Could not find blob"}`
				}
			}
			have("%.5s%s", in.Record.Text, shown)
			return 200, `{}`
		}
	}, []conversation{
		{name: "pictures", url: "bsky://ann@app-password", files: strings.Fields("1.png 2.png"), want: []string{"02/02 b1", "Disk  b0"}},
		{name: "nobody by that handle", url: "bsky://eve@app-password", err: "Unable to resolve handle"},
		{name: "a wrong password", url: "bsky://ann@wrong", err: "signing in"},
	})
}

// Webex writes one file at most into rooms that the bot is in.
func TestWebexConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
		return func(q *http.Request, body string) (int, string) {
			var in struct{ RoomID, Markdown string }
			files := []string(nil)
			if json.Unmarshal([]byte(body), &in) != nil {
				f := fields(q, body)
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
			have("%s %.6s %d", in.RoomID, in.Markdown, len(files))
			return 200, `{}`
		}
	}, []conversation{
		{name: "to two rooms", url: "webex://tok3n/ops/dev", want: []string{"dev # Disk 0", "ops # Disk 0"}},
		{name: "files", url: "webex://tok3n/ops", files: strings.Fields("1.png 2.png"), want: []string{"ops  1", "ops # Disk 1"}},
		{name: "a room that there is not", url: "webex://tok3n/ops/gone", err: "Could not find a room", want: []string{"ops # Disk 0"}},
		{name: "an expired token", url: "webex://old/ops", err: "valid access token"},
	})
}

// A Nextcloud server has users in groups, and obeys its administrator.
func TestNextcloudConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
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
			have("%s", name)
			return 200, `{}`
		}
	}, []conversation{
		{name: "a group, and one of it", url: "ncloud://admin:pa55word@example.org/#ops/ann", want: []string{"ann", "bob"}},
		{name: "everybody", url: "ncloud://admin:pa55word@example.org/all", want: []string{"ann", "bob", "cay"}},
		{name: "a group that there is not", url: "ncloud://admin:pa55word@example.org/#gone", err: "Group could not be found"},
		{name: "a user that there is not", url: "ncloud://admin:pa55word@example.org/eve/ann", err: "404 Not Found", want: []string{"ann"}},
		{name: "a wrong password", url: "ncloud://admin:wrong@example.org/ann", err: "401 Unauthorized"},
	})
}

// A Signal server has one account, and knows the groups that this is in.
func TestSignalConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
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
				if string(a) != string(pixel) {
					return 400, `{"error":"invalid attachment"}`
				}
			}
			have("%s %d", in.Recipients, len(in.Attachments))
			return 201, `{"timestamp":"1"}`
		}
	}, []conversation{
		{name: "a number and a group", url: "signal://example.org/15551230000/15551112222/@b3Bz", files: []string{"1.png"}, want: []string{"[+15551112222] 1", "[group.b3Bz] 1"}},
		{name: "in one request", url: "signal://example.org/15551230000/15551112222/@b3Bz?batch=yes", want: []string{"[+15551112222 group.b3Bz] 0"}},
		{name: "a group that we are not in", url: "signal://example.org/15551230000/@Z29uZQ/15551112222", err: "Invalid group id", want: []string{"[+15551112222] 0"}},
		{name: "another account", url: "signal://example.org/15559990000/15551112222", err: "account does not exist"},
	})
}

// Vonage says in an answer with status 200 what it refuses.
func TestVonageConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
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
				have("from %s", form.Get("from"))
			}
			return 200, fmt.Sprintf(`{"message-count":"1","messages":[{"status":%q,"error-text":%q}]}`, status, text)
		}
	}, []conversation{
		{name: "sent", url: "vonage://k3y:s3cret@15551230000/15551112222", want: []string{"from 15551230000"}},
		{
			name: "no money left", url: "vonage://k3y:s3cret@15551230000/15551112222/15551113333/15551114444", err: "Quota Exceeded",
			want: []string{"from 15551230000", "from 15551230000"},
		},
		{name: "a wrong secret", url: "vonage://k3y:wrong@15551230000/15551112222", err: "Bad Credentials"},
	})
}

// The Threema gateway takes one credit for a message to somebody it knows.
func TestThreemaConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
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
						have("one by %s", kind)
					}
				}
				return 200, "0123456789abcdef"
			}
		}
	}, []conversation{
		{name: "an ID and a telephone", url: "threema://*GATEWAY@s3cret/ECHOECHO/15551112222", want: []string{"one by phone", "one by to"}},
		{name: "no such ID", url: "threema://*GATEWAY@s3cret/NOBODY00/ECHOECHO", err: "400 Bad Request", want: []string{"one by to"}},
		{name: "no credit left", url: "threema://*GATEWAY@s3cret/a@example.org/b@example.org/c@example.org", err: "402 Payment Required", want: []string{"one by email", "one by email"}},
		{name: "a wrong secret", url: "threema://*GATEWAY@wrong/ECHOECHO", err: "401 Unauthorized"},
	})
}

// A Zoom webhook has an address and a token, and wants text or its own JSON.
func TestZoomConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
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
			have("%s", body)
			return 200, ""
		}
	}, []conversation{
		{name: "full", url: "zoom://h00k/tok3n", want: []string{"Disk almost full; Volume /data is at 91% on host-7"}},
		{name: "simple", url: "zoom://h00k/tok3n?mode=simple", want: []string{"Disk almost full: Volume /data is at 91% on host-7"}},
		{name: "another token", url: "zoom://h00k/old", err: "401 Unauthorized"},
		{name: "another webhook", url: "zoom://gone/tok3n", err: "404 Not Found"},
	})
}
