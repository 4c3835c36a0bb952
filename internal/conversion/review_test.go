package conversion

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

// deaf is an API server that does not answer.
type deaf struct{ client.Reader }

func (deaf) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no answer")
}

func TestReview(t *testing.T) {
	r := &reviewer{client: deaf{}, now: time.Now, log: logr.Discard()}
	review := func(version, objects string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"` + version + `","objects":` + objects + `}}`
	}
	for _, test := range []struct {
		name, body string
		code       int
		result     string // part of what is wrong; empty for success
		objects    int
	}{
		{"none", review("karpenter.sh/v1", `[]`), 200, "", 0},
		{"a pool", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"a"},"spec":{}}]`), 200, "", 1},
		{"without metadata, as pruning leaves it", review("karpenter.sh/v1beta1", `[{"apiVersion":"karpenter.sh/v1","kind":"NodePool"}]`), 200, "", 1},
		{"another kind", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"Provisioner"}]`), 200, "want a NodePool", 0},
		{"no object", review("karpenter.sh/v1", `[1]`), 200, "reading an object", 0},
		{"a claim whose pool cannot be asked", review("karpenter.sh/v1", `[{"apiVersion":"karpenter.sh/v1beta1","kind":"NodeClaim","metadata":{"labels":{"karpenter.sh/nodepool":"a"}},"spec":{}}]`),
			200, "asking when claims of pool a expire", 0},
		{"no request", `{}`, 400, "", 0},
		{"no JSON", `a`, 400, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(test.body)))
			if w.Code != test.code {
				t.Fatalf("code %d, want %d: %s", w.Code, test.code, w.Body)
			}
			if test.code != http.StatusOK {
				return
			}
			answer := &apiextensionsv1.ConversionReview{}
			if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
				t.Fatal(err)
			}
			got := answer.Response
			if got.UID != "1" || len(got.ConvertedObjects) != test.objects || !strings.Contains(got.Result.Message, test.result) || (got.Result.Status == "Success") != (test.result == "") {
				t.Errorf("got %s, want %d objects and the failure %q", w.Body, test.objects, test.result)
			}
			for _, object := range got.ConvertedObjects {
				if !strings.Contains(string(object.Raw), `"metadata":{`) {
					t.Errorf("there is no metadata in %s", object.Raw)
				}
			}
		})
	}
}
