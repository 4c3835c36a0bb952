package awssim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// namespaces of the XML responses.
var namespaces = map[string]string{
	"ec2": "http://ec2.amazonaws.com/doc/2016-11-15/",
	"iam": "https://iam.amazonaws.com/doc/2010-05-08/",
	"sts": "https://sts.amazonaws.com/doc/2011-06-15/",
	"sqs": "http://queue.amazonaws.com/doc/2012-11-05/",
}

// uuid returns a random version 4 UUID that depends on the seed. The caller holds the lock.
func (c *Cloud) uuid() string {
	a, b := c.rand.Uint64(), c.rand.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// reply is the result of a call.
type reply struct {
	out    any
	err    error
	shapes []reshape
}

// write encodes a response in the service's protocol.
func write(w http.ResponseWriter, r *request, answer reply) {
	out, err := answer.out, answer.err
	status := http.StatusOK
	var refusal *apiError
	if err != nil {
		if !errors.As(err, &refusal) {
			refusal = &apiError{"InternalError", err.Error(), http.StatusInternalServerError}
		}
		status = refusal.status
		if r.xml && slices.Contains([]string{"AccessDeniedException", "ExpiredTokenException", "RequestThrottled"}, refusal.code) {
			status = http.StatusForbidden // in SQS's Query protocol
		}
	}
	var body []byte
	switch {
	case r.xml:
		body = queryBody(r, out, refusal)
		w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
		w.Header().Set("X-Amzn-Requestid", r.id)
	default:
		body = jsonBody(w.Header(), r, out, refusal)
	}
	for _, shape := range answer.shapes {
		body = shape(r, body)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// queryBody returns a response of the Query protocol. EC2 and the others differ in the location of the request ID and
// of errors. https://smithy.io/2.0/aws/protocols/aws-ec2-query-protocol.html,
// https://smithy.io/2.0/aws/protocols/aws-query-protocol.html
func queryBody(r *request, out any, refusal *apiError) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	ns := namespaces[r.service]
	switch {
	case refusal != nil && r.service == "ec2":
		fmt.Fprintf(&b, "<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>%s</RequestID></Response>",
			escape(refusal.code), escape(refusal.message), r.id)
	case refusal != nil:
		code := refusal.code
		if older := cmp.Or(queryErrors[code], queryCommon[code]); older != "" && r.service == "sqs" {
			code = older
		}
		fmt.Fprintf(&b, `<ErrorResponse xmlns="%s"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId></ErrorResponse>`,
			ns, escape(code), escape(refusal.message), r.id)
	case r.service == "ec2":
		fmt.Fprintf(&b, `<%sResponse xmlns="%s"><requestId>%s</requestId>%s</%sResponse>`, r.action, ns, r.id, inner(out), r.action)
	default:
		fmt.Fprintf(&b, `<%[1]sResponse xmlns="%[2]s"><%[1]sResult>%[3]s</%[1]sResult><ResponseMetadata><RequestId>%[4]s</RequestId></ResponseMetadata></%[1]sResponse>`,
			r.action, ns, inner(out), r.id)
	}
	return b.Bytes()
}

// inner returns the XML of the fields of a struct, without the enclosing element.
func inner(out any) string {
	if out == nil {
		return ""
	}
	var b bytes.Buffer
	if err := xml.NewEncoder(&b).EncodeElement(out, xml.StartElement{Name: xml.Name{Local: "x"}}); err != nil {
		panic(fmt.Sprintf("encoding %T: %v", out, err))
	}
	text := b.String()
	if text == "<x></x>" {
		return ""
	}
	return text[len("<x>") : len(text)-len("</x>")]
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// jsonBody returns a response of the JSON protocols. https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html,
// aws-json-1_1, aws-restjson1
func jsonBody(h http.Header, r *request, out any, refusal *apiError) []byte {
	contentType := map[string]string{"sqs": "application/x-amz-json-1.0", "eks": "application/json",
		"arc-zonal-shift": "application/json", "savingsplans": "application/json"}[r.service]
	if contentType == "" {
		contentType = "application/x-amz-json-1.1"
	}
	h.Set("Content-Type", contentType)
	h.Set("X-Amzn-Requestid", r.id)
	if refusal != nil {
		kind := refusal.code
		if r.service == "sqs" {
			if older, ok := queryErrors[kind]; ok {
				h.Set("X-Amzn-Query-Error", older+";Sender")
			}
			kind = "com.amazonaws.sqs#" + kind
		}
		h.Set("X-Amzn-Errortype", refusal.code)
		out = map[string]string{"__type": kind, "message": refusal.message}
	}
	if out == nil {
		out = struct{}{}
	}
	body, err := json.Marshal(out)
	if err != nil {
		panic(fmt.Sprintf("encoding %T: %v", out, err))
	}
	return body
}
