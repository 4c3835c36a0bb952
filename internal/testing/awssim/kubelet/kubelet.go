package kubelet

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// Cluster holds the values that the user data of a joining machine must have.
type Cluster struct {
	Name      string
	Endpoint  string // URL
	Authority string // PEM in base64
}

// Kubelets simulates the kubelets of all instances. It is the Hook of a simulated AWS.
type Kubelets struct {
	// Client is a client for the cluster that instances join.
	Client  client.Client
	Cluster Cluster
	// Log receives a sentence about each failure. It may be nil.
	Log func(string)

	mu      sync.Mutex
	refused map[string]string
	gone    map[string]bool // terminated instances
}

var _ awssim.Hook = (*Kubelets)(nil)

const (
	// answerTime limits one request to the API server. A kubelet repeats it mostTries times, with a pause after each.
	answerTime = 10 * time.Second
	mostTries  = 600
	retryAfter = 500 * time.Millisecond
)

// Booted implements awssim.Hook. It starts the registration of the instance's node, or records why it will not join,
// and does not wait for the registration.
func (k *Kubelets) Booted(i awssim.Instance) {
	config, err := Read(i.ImageFamily, i.UserData)
	if err == nil {
		err = joins(i, config, k.Cluster)
	}
	if err != nil {
		k.refuse(i, err)
		return
	}
	go k.repeat("registering node "+i.PrivateDNSName, func(ctx context.Context) error {
		if k.ended(i.ID) {
			return nil
		}
		if err := k.register(ctx, i, config); err != nil {
			return err
		}
		if k.ended(i.ID) { // during the registration
			return k.remove(ctx, i)
		}
		return nil
	})
}

// register creates the instance's Node. Its name is derived from the address, so the Node of an earlier instance may
// still exist.
func (k *Kubelets) register(ctx context.Context, i awssim.Instance, config Config) error {
	err := k.Client.Create(ctx, nodeOf(i, config))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	before := &corev1.Node{}
	if err := k.Client.Get(ctx, client.ObjectKey{Name: i.PrivateDNSName}, before); err != nil {
		return err
	}
	if before.Spec.ProviderID != providerID(i) {
		return fmt.Errorf("there is a node of that name, of %s", before.Spec.ProviderID)
	}
	return nil
}

// Gone implements awssim.Hook. It deletes the node of a terminated instance, as the cloud controller manager does.
func (k *Kubelets) Gone(i awssim.Instance) {
	k.mu.Lock()
	if k.gone == nil {
		k.gone = map[string]bool{}
	}
	k.gone[i.ID] = true
	k.mu.Unlock()
	go k.repeat("deleting node "+i.PrivateDNSName, func(ctx context.Context) error { return k.remove(ctx, i) })
}

func (k *Kubelets) remove(ctx context.Context, i awssim.Instance) error {
	node := &corev1.Node{}
	err := k.Client.Get(ctx, client.ObjectKey{Name: i.PrivateDNSName}, node)
	if err == nil && node.Spec.ProviderID == providerID(i) {
		err = k.Client.Delete(ctx, node, client.Preconditions{UID: &node.UID})
	}
	return client.IgnoreNotFound(err)
}

func (k *Kubelets) ended(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone[id]
}

// repeat repeats an operation until it succeeds, for a few minutes.
func (k *Kubelets) repeat(what string, do func(context.Context) error) {
	var err error
	for range mostTries {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		err = do(ctx)
		cancel()
		if err == nil {
			return
		}
		<-time.After(retryAfter)
	}
	k.log(fmt.Sprintf("%s: %v", what, err))
}

func (k *Kubelets) refuse(i awssim.Instance, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refused == nil {
		k.refused = map[string]string{}
	}
	k.refused[i.ID] = err.Error()
	k.log(fmt.Sprintf("instance %s will not join: %v", i.ID, err))
}

func (k *Kubelets) log(text string) {
	if k.Log != nil {
		k.Log(text)
	}
}

// Refused returns why booted instances did not join, by instance ID.
func (k *Kubelets) Refused() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.refused)
}
