package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deaf is an API server that does not respond.
type deaf struct{ client.Reader }

func (deaf) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no answer")
}

func TestReview(t *testing.T) {
	r := newReviewer(deaf{}, time.Now, logr.Discard())
	review := func(version, objects string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"` + version + `","objects":` + objects + `}}`
	}
	for _, test := range []struct {
		name, body string
		code       int
		result     string // part of the error; empty for success
		objects    int
	}{
		{"none", review("karpenter.sh/v1", `[]`), 200, "", 0},
		{"a pool", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"a"},"spec":{}}]`),
			200, "", 1},
		{"without metadata, as pruning leaves it", review("karpenter.sh/v1beta1", `[{"apiVersion":"karpenter.sh/v1","kind":"NodePool"}]`),
			200, "", 1},
		{"another kind", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"Provisioner"}]`), 200, "want a NodePool", 0},
		{"no object", review("karpenter.sh/v1", `[1]`), 200, "reading an object", 0},
		{"a claim whose pool cannot be asked", review("karpenter.sh/v1",
			`[{"apiVersion":"karpenter.sh/v1beta1","kind":"NodeClaim","metadata":{"labels":{"karpenter.sh/nodepool":"a"}},"spec":{}}]`),
			200, "reading when claims expire", 0},
		{"the second of two is wrong", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool"},{"kind":"x"}]`),
			200, "want a NodePool", 1},
		{"fields that nothing reads", `{"kind":"ConversionReview","x":[{"request":1}],"request":{"y":{},"uid":"1","desiredAPIVersion":"karpenter.sh/v1","objects":null,"z":[]}}`, 200, "", 0},
		{"an object with too many fields", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"a"},"spec":[`+strings.Repeat("[],", 10_000)+`1]}]`),
			200, "NodePool a: an object of 30", 0},
		{"an object that is nested too deep", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"a"},"spec":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}]`),
			200, "NodePool a: an object is nested 1001 deep, want at most 1000", 0},
		{"an object that is not UTF-8", review("karpenter.sh/v1", `[{"kind":"NodePool","metadata":{"name":"a`+"\xff"+`"}}]`), 200, "an object is not UTF-8", 0},
		{"too much for an annotation", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"`+strings.Repeat("a", 1000)+
			`"},"spec":{"template":{"spec":{"resources":[`+strings.Repeat("[],", 2_000)+`1]}}}}]`), 200, "...: annotation karpenter-go.github.io/v1beta1: it has so many fields", 0},
		{"one long text", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"`+strings.Repeat("é", 1<<20)+`"}]`),
			200, "converting é", 0},
		{"an object that is too long", review("karpenter.sh/v1", `["`+strings.Repeat("a", longestObject)+`"]`), 200, "an object without a name: an object has", 0},
		{"a request that is too long", review("karpenter.sh/v1", `["`+strings.Repeat("a", longestReview)+`"]`), 413, "", 0},
		{"cut off", strings.TrimSuffix(review("karpenter.sh/v1", `[]`), "}}"), 400, "", 0},
		{"cut off after an object", review("karpenter.sh/v1",
			`[{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool"},`)[:140+len("apiVersion")], 400, "", 0},
		{"too many brackets", review("karpenter.sh/v1", `[`+strings.Repeat("[", 20000)), 400, "", 0},
		{"a list", `[]`, 400, "", 0},
		{"objects that are no list", review("karpenter.sh/v1", `{}`), 200, "want a list", 0},
		{"no request", `{}`, 400, "", 0},
		{"no JSON", `a`, 400, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(test.body)))
			if w.Code != test.code {
				t.Fatalf("code %d, want %d: %s", w.Code, test.code, short(w.Body.String()))
			}
			if got := w.Body.Len(); test.objects == 0 && got > 2*longestText+200 {
				t.Errorf("the response to an invalid request has %d bytes", got)
			}
			if test.code != http.StatusOK {
				return
			}
			answer := &apiextensionsv1.ConversionReview{}
			if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
				t.Fatal(err)
			}
			got := answer.Response
			switch {
			case got.UID != "1":
				t.Errorf(`got %s: got.UID is %v, want "1"`, w.Body, got.UID)
			case len(got.ConvertedObjects) != test.objects:
				t.Errorf("got %s: len(got.ConvertedObjects) is %v, want %v", w.Body, len(got.ConvertedObjects), test.objects)
			case !strings.Contains(got.Result.Message, test.result):
				t.Errorf("got %s: got.Result.Message lacks %q", w.Body, test.result)
			case (got.Result.Status == "Success") != (test.result == ""):
				t.Errorf(`got %s: (got.Result.Status == "Success") is %v, want %v, objects and the failure %q`, w.Body,
					(got.Result.Status == "Success"), (test.result == ""), test.result)
			}
			for _, object := range got.ConvertedObjects {
				if !strings.Contains(string(object.Raw), `"metadata":{`) {
					t.Errorf("there is no metadata in %s", object.Raw)
				}
			}
		})
	}
}
