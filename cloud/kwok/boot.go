package kwok

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

const (
	// fakeNode is the label and annotation that mark the nodes that kwok's controller manages.
	fakeNode = "kwok.x-k8s.io/node"
	// AnnotationRecord is the annotation of a Node that refers to the ConfigMap with its machine's record, as
	// namespace/name.
	AnnotationRecord = karpv1.OwnAnnotationPrefix + "kwok-record"
	// AnnotationClaimUID is the annotation of a Node with the UID of the claim that its machine was launched for.
	AnnotationClaimUID = karpv1.OwnAnnotationPrefix + "kwok-claim-uid"
)

// NeedLeaderElection implements controller-runtime's LeaderElectionRunnable: only one process boots machines.
func (p *Provider) NeedLeaderElection() bool { return true }

// Start simulates the machines until ctx ends: it creates Nodes when they are due. It
// first completes the unfinished work of an earlier process. It can be called once.
func (p *Provider) Start(ctx context.Context) error {
	defer p.queue.ShutDown()
	var workers sync.WaitGroup
	for range p.opts.Workers {
		workers.Go(func() {
			for p.bootNext(ctx) {
			}
		})
	}
	if p.reservation != "" {
		workers.Go(func() { p.followReservations(ctx) })
	}
	// The workers continue meanwhile: a Node that cannot be adopted must not block the other machines.
	for pause := 10 * p.opts.RetryBackoff; p.resume(ctx) != nil; pause = min(2*pause, time.Minute) {
		if p.pause(ctx, pause) != nil {
			break
		}
	}
	<-ctx.Done()
	p.queue.ShutDown()
	workers.Wait()
	return nil
}

// resume queues every machine with a pending transition. It deletes the Nodes whose machines are gone: a process may
// have crashed between the two deletions, or created a Node while another process terminated the machine. Nodes are
// listed first. Every Node of this provider in the list had a record before, so one without a record now has lost it.
// Nodes of upstream's provider never had a record and get one here. The error describes what could not be done; resume
// can be called again.
func (p *Provider) resume(ctx context.Context) error {
	var page corev1.NodeList
	var foreign []corev1.Node
	var owned []string
	err := p.pages(ctx, "listing simulated nodes", &page, func() {
		for i := range page.Items {
			switch node := &page.Items[i]; {
			case fromUpstream(node):
				foreign = append(foreign, *node)
			case p.ownsNode(node):
				owned = append(owned, node.Name)
			}
		}
	}, client.MatchingLabels{fakeNode: "fake"})
	if err != nil {
		log.FromContext(ctx).Error(err, "resuming simulated machines")
		return err
	}
	objects, err := p.recordObjects(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "resuming simulated machines")
		return err
	}
	known := sets.New[string]()
	for i := range objects {
		known.Insert(objects[i].Name)
		if s, err := parse(&objects[i]); err == nil && !s.Registered {
			p.queue.Add(s.Name)
		}
	}
	var errs []error
	for i := range foreign {
		if err := p.adopt(ctx, &foreign[i]); err != nil {
			log.FromContext(ctx).Error(err, "adopting a node without a record; it is tried again", "node", foreign[i].Name)
			errs = append(errs, err)
		}
	}
	for _, name := range owned {
		if known.Has(recordName(name)) {
			continue
		}
		if err := p.deleteNode(ctx, name); err != nil {
			log.FromContext(ctx).Error(err, "deleting the node of a machine that is gone; it is tried again", "node", name)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ownsNode reports whether a Node was created by a provider with the same record namespace.
func (p *Provider) ownsNode(node *corev1.Node) bool {
	return node.Annotations[AnnotationRecord] == p.opts.Namespace+"/"+recordName(node.Name)
}

func (p *Provider) bootNext(ctx context.Context) bool {
	name, shutdown := p.queue.Get()
	if shutdown {
		return false
	}
	defer p.queue.Done(name)
	if err := p.advance(ctx, name); err != nil {
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "playing a simulated machine; it is tried again", "machine", name)
		}
		p.queue.AddRateLimited(name)
		return true
	}
	p.queue.Forget(name)
	return true
}

// advance moves one machine to the state that is due and queues it for its next transition.
func (p *Provider) advance(ctx context.Context, name string) error {
	unlock, err := p.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := p.record(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	now := p.opts.Clock.Now()
	switch {
	case s.Registered:
		return nil
	case now.Before(s.RegisterAt):
		p.queue.AddAfter(name, durationUntil(s.RegisterAt, now))
		return nil
	}
	if err := p.createNode(ctx, s); err != nil {
		return err
	}
	s.Registered = true
	return p.save(ctx, s)
}

// createNode registers the machine with the cluster.
func (p *Provider) createNode(ctx context.Context, s *stored) error {
	node := p.node(&s.record)
	err := p.call(ctx, "creating node "+s.Name, func(ctx context.Context) error {
		return p.opts.Client.Create(ctx, node.DeepCopy())
	})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &corev1.Node{}
	err = p.call(ctx, "reading node "+s.Name, func(ctx context.Context) error {
		return p.opts.Reader.Get(ctx, types.NamespacedName{Name: s.Name}, existing)
	})
	if err != nil {
		return err
	}
	if existing.Annotations[AnnotationClaimUID] != string(s.ClaimUID) {
		return fmt.Errorf("node %s exists already and is not that of claim %q", s.Name, s.Claim)
	}
	return nil
}

// node returns the Node that the machine's kubelet would register. kwok's controller sets it to Ready.
func (p *Provider) node(r *record) *corev1.Node {
	labels := maps.Clone(r.NodeLabels)
	maps.Copy(labels, r.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   r.Name,
			Labels: labels,
			Annotations: map[string]string{
				fakeNode:           "fake",
				AnnotationRecord:   p.opts.Namespace + "/" + recordName(r.Name),
				AnnotationClaimUID: string(r.ClaimUID),
			},
		},
		Spec: corev1.NodeSpec{
			ProviderID: providerScheme + r.Name,
			Taints:     []corev1.Taint{karpv1.UnregisteredTaint()},
		},
		Status: corev1.NodeStatus{
			Capacity: cloud.ResourceList(r.Capacity), Allocatable: cloud.ResourceList(r.Allocatable),
			Phase: corev1.NodePending,
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: labels[corev1.LabelArchStable], OperatingSystem: labels[corev1.LabelOSStable],
			},
		},
	}
}
