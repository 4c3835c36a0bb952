package conversion

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/legacy/beta"
)

// longestReview, in bytes, bounds what one request may make us read. The API server sends lists whole; those of thousands
// of objects in an older version are a tenth of this.
const longestReview = 64 << 20

// expiryFor is how long a pool's expiry is believed.
const expiryFor = 10 * time.Second

// reviewer answers ConversionReviews.
type reviewer struct {
	client client.Reader
	now    func() time.Time
	log    logr.Logger

	lock  sync.Mutex
	known map[string]expiry // by pool
}

// expiry is what a pool said; empty if there is no such pool.
type expiry struct {
	age string
	at  time.Time
}

// ServeHTTP converts what the API server sends.
func (r *reviewer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, longestReview)).Decode(review); err != nil || review.Request == nil {
		http.Error(w, fmt.Sprintf("want a ConversionReview with a request: %v", err), http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	converted, err := r.convert(request.Context(), review.Request)
	if err != nil {
		r.log.Error(err, "objects could not be converted", "version", review.Request.DesiredAPIVersion)
		response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	response.ConvertedObjects = converted
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		r.log.V(1).Info("the API server did not wait for a conversion", "why", err.Error())
	}
}

func (r *reviewer) convert(ctx context.Context, request *apiextensionsv1.ConversionRequest) ([]runtime.RawExtension, error) {
	converted := make([]runtime.RawExtension, 0, len(request.Objects))
	for i := range request.Objects {
		var object map[string]any
		if err := utiljson.Unmarshal(request.Objects[i].Raw, &object); err != nil {
			return nil, fmt.Errorf("reading an object to be converted: %w", err)
		}
		converter, err := r.converter(ctx, object)
		if err != nil {
			return nil, err
		}
		result, err := converter.Convert(object, request.DesiredAPIVersion)
		if err != nil {
			return nil, err
		}
		if result["metadata"] == nil { // pruning in a server-side apply leaves objects without any; the answer has to have some
			result["metadata"] = map[string]any{}
		}
		raw, err := json.Marshal(result)
		if err != nil {
			return nil, fmt.Errorf("writing a converted object: %w", err)
		}
		converted = append(converted, runtime.RawExtension{Raw: raw})
	}
	return converted, nil
}

// converter knows when the object expires, if its pool has to be asked for that.
func (r *reviewer) converter(ctx context.Context, object map[string]any) (beta.Converter, error) {
	pool := beta.PoolToAsk(object)
	if pool == "" {
		return beta.Converter{}, nil
	}
	age, err := r.expiryOf(ctx, pool)
	return beta.Converter{Expiry: func(string) string { return age }}, err
}

// expiryOf asks the API server, at most every few seconds for one pool. What it says of the pool may in turn have been
// converted here; that asks nobody.
func (r *reviewer) expiryOf(ctx context.Context, pool string) (string, error) {
	r.lock.Lock()
	known, ok := r.known[pool]
	r.lock.Unlock()
	if ok && r.now().Sub(known.at) < expiryFor {
		return known.age, nil
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(karpv1.GroupVersion.WithKind("NodePool"))
	if err := r.client.Get(ctx, client.ObjectKey{Name: pool}, found); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("asking when claims of pool %s expire: %w", pool, err)
	} else if apierrors.IsNotFound(err) {
		found = nil
	}
	age := ""
	if found != nil {
		age, _, _ = unstructured.NestedString(found.Object, "spec", "template", "spec", "expireAfter")
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	for name, e := range r.known {
		if r.now().Sub(e.at) >= expiryFor {
			delete(r.known, name)
		}
	}
	if r.known == nil {
		r.known = map[string]expiry{}
	}
	r.known[pool] = expiry{age, r.now()}
	return age, nil
}
