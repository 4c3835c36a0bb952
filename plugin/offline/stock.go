package offline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
)

// Each pool gets its offerings from the provider of its own node class. If a provider cannot be queried, only its own
// pools have no instance types, with the reason.

// readCatalogs sets what each pool of a cluster can launch.
func (l *Cluster) readCatalogs(ctx context.Context, c client.Client, o *Manifests, instanceTypes string) error {
	if instanceTypes != "" && o.ofAWS() {
		return o.typesOn(instanceTypes)
	}
	o.sale = nil
	if o.ofAWS() {
		list, err := l.saleOfAWS(ctx, c, o)
		if err != nil {
			return err
		}
		o.sale = list
	}
	if o.sale == nil || slices.ContainsFunc(o.pricedPools(),
		func(p *karpv1.NodePool) bool { return classOf(p).Group == kwokv1alpha1.Group }) {
		list, err := l.saleOfKwok(ctx, c, o, instanceTypes)
		if err != nil {
			return err
		}
		o.sale = o.sale.With(list)
	}
	return nil
}

// saleOfAWS returns what AWS pools can launch. If there are pools of other providers, a failure becomes the AWS
// pools' reason instead of an error.
func (l *Cluster) saleOfAWS(ctx context.Context, c client.Client, o *Manifests) (*capture.PriceList, error) {
	if l.CloudProvider == "kwok" {
		return o.unknownOfAWS(excludes + awsv1.Kind), nil
	}
	err := l.readAWS(ctx, c, o)
	if err == nil && o.lacks(awsClasses) {
		return o.unknownOfAWS("the user may not list objects of the kind " + awsv1.Kind), nil
	}
	if err == nil {
		var list *capture.PriceList
		if list, err = l.stockAWS(ctx, o, true); err == nil {
			return list, nil
		}
	}
	others := func(p sourced[*karpv1.NodePool]) bool { return classOf(p.object).Group != awsv1.Group }
	if len(o.pools) > 0 && !slices.ContainsFunc(o.pools, others) {
		return nil, err
	}
	return o.unknownOfAWS(OneLine(err)), nil
}

// stockFiles sets what the pools of files can launch, if neither a capture nor the files contain it: AWS pools by their
// classes, kwok pools with the embedded types. What pools of other providers can launch is not known.
func (l *Cluster) stockFiles(ctx context.Context, o *Manifests, instanceTypes string) error {
	if o.sale != nil || cmp.Or(instanceTypes, o.typesFile) != "" {
		return o.typesOn(instanceTypes)
	}
	if err := o.typesOn(""); err != nil {
		return err
	}
	simulated := schema.GroupKind{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind}
	o.sale.AddClass(simulated)
	l.refuseUnknownProviders(o, simulated)
	switch {
	case !o.ofAWS():
	case l.CloudProvider == "kwok":
		o.sale = o.unknownOfAWS(excludes + awsv1.Kind).With(o.sale)
	default:
		ofAWS, err := l.stockAWS(ctx, o, false)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(o.pools, func(p sourced[*karpv1.NodePool]) bool { return classOf(p.object).Group != awsv1.Group }) {
			ofAWS = ofAWS.With(o.sale)
		}
		o.sale = ofAWS
	}
	return nil
}

const excludes = "--cloud-provider=kwok excludes pools of the kind "

// refuseUnknownProviders gives pools of files whose provider is not built in the reason why they can launch nothing. It is
// bad input unless the caller has excluded them.
func (l *Cluster) refuseUnknownProviders(o *Manifests, simulated schema.GroupKind) {
	for _, p := range o.pools {
		ref := classOf(p.object)
		kind := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
		if kind == simulated || ref.Group == awsv1.Group {
			continue
		}
		why := "what the pool can launch is not known: " + excludes + kind.String()
		if l.CloudProvider != "kwok" {
			why = fmt.Sprintf("instance types and prices of %s are not built in, want --instance-types FILE", kind)
			o.problem(fmt.Errorf("%s: spec.template.spec.nodeClassRef: %s", p.origin, why))
		}
		o.sale.AddClass(kind)
		o.sale.Catalogs = append(o.sale.Catalogs, capture.PriceListEntry{Pools: []string{p.object.Name}, Reason: why})
	}
}

// saleOfKwok returns what pools of simulated nodes can launch.
func (l *Cluster) saleOfKwok(ctx context.Context, c client.Client, o *Manifests, instanceTypes string) (*capture.PriceList, error) {
	provider, err := l.provider(c, instanceTypes)
	if err != nil {
		return nil, err
	}
	list := &capture.PriceList{Declared: provider.Declared()}
	for _, class := range provider.NodeClasses() {
		kind, err := c.GroupVersionKindFor(class)
		if err != nil {
			return nil, fmt.Errorf("reading the cluster: %w", err)
		}
		list.AddClass(kind.GroupKind())
	}
	for _, p := range o.pricedPools() {
		if classOf(p).Group == awsv1.Group {
			continue
		}
		types, err := provider.Catalog(ctx, p)
		stock := capture.PriceListEntry{Pools: []string{p.Name}, Types: types}
		if err != nil {
			o.deny("get", kwokClasses, err)
			stock = capture.PriceListEntry{Pools: stock.Pools, Reason: OneLine(err)}
		}
		list.Catalogs = append(list.Catalogs, stock)
	}
	return list, nil
}

// pricedPools returns the pools, and one for each missing pool.
func (o *objects) pricedPools() []*karpv1.NodePool {
	list := make([]*karpv1.NodePool, len(o.pools))
	for i := range o.pools {
		list[i] = o.pools[i].object
	}
	return append(list, o.missingPools()...)
}

// missingPools returns a pool for each name and class of claims whose pool does not exist: their provider knows what
// their machines cost.
func (o *objects) missingPools() []*karpv1.NodePool {
	var list []*karpv1.NodePool
	for _, c := range o.claims {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: c.object.Labels[karpv1.LabelNodePool]}}
		pool.Spec.Template.Spec.NodeClassRef = c.object.Spec.NodeClassRef
		same := func(p *karpv1.NodePool) bool { return p.Name == pool.Name && classOf(p) == classOf(pool) }
		exists := func(p sourced[*karpv1.NodePool]) bool { return p.object.Name == pool.Name }
		if !slices.ContainsFunc(o.pools, exists) && !slices.ContainsFunc(list, same) {
			list = append(list, pool)
		}
	}
	return list
}

func classOf(pool *karpv1.NodePool) karpv1.NodeClassReference {
	return pool.Spec.Template.Spec.NodeClassRef
}

func (l *Cluster) provider(c client.Client, instanceTypes string) (cloud.Provider, error) {
	options := kwok.Options{Client: c}
	if instanceTypes != "" {
		types, labels, err := readTypes(instanceTypes)
		if err != nil {
			return nil, err
		}
		options.Types, options.ProviderLabels = types, labels
	}
	provider, err := kwok.New(options)
	if err != nil {
		return nil, fmt.Errorf("setting up kwok: %w", err)
	}
	return provider, nil
}
