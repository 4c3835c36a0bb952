package offline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
)

// This file computes the offerings of AWS pools from their node classes, by the same code that the provider uses. AWS
// is queried only with --cloud-provider=aws. Otherwise types and prices are the built-in ones, and the answer
// contains their date.

// refreshEvery is how long types and prices of AWS are cached for a verb that reads repeatedly.
const refreshEvery = 15 * time.Minute

// awsPrices holds the types and prices of a region. It is kept between readings.
type awsPrices struct {
	showcase *aws.OfflineCatalog
	opts     aws.OfflineOptions
	clients  aws.Clients
	asked    time.Time
}

// stockAWS computes the offerings of each class that AWS pools name. Live classes are used as they are. For classes
// of files, it assumes what the controller has not resolved yet.
func (l *Cluster) stockAWS(ctx context.Context, o *Manifests, live bool) (*capture.PriceList, error) {
	showcase, err := l.showcaseOf(ctx, o)
	if err != nil {
		return nil, err
	}
	o.observeMemory(showcase)
	l.countReservations(ctx, o, showcase)
	list := newSaleOfAWS(showcase.Source())
	for _, name := range o.classNamesOfAWS() {
		list.Catalogs = append(list.Catalogs, byTenancy(o.pools, o.stockOf(showcase, name, live))...)
	}
	for _, p := range o.pools {
		if ref := classOf(p.object); ref.Group == awsv1.Group && ref.Kind != awsv1.Kind {
			list.Catalogs = append(list.Catalogs, capture.PriceListEntry{Pools: []string{p.object.Name},
				Reason: fmt.Sprintf("spec.template.spec.nodeClassRef: is of the kind %s, want %s", ref.Kind, awsv1.Kind)})
		}
	}
	return list, nil
}

func newSaleOfAWS(source string) *capture.PriceList {
	return &capture.PriceList{Declared: aws.Declared(), NodeClasses: []schema.GroupKind{{Group: awsv1.Group, Kind: awsv1.Kind}}, Source: source}
}

// unknownOfAWS returns a price list that reports that the offerings and prices of AWS pools are not known.
func (o *objects) unknownOfAWS(why string) *capture.PriceList {
	unknown := newSaleOfAWS("those of pools of the kind " + awsv1.Kind + " are not known: " + why)
	for _, name := range o.classNamesOfAWS() {
		unknown.Catalogs = append(unknown.Catalogs, capture.PriceListEntry{Class: name, Reason: "what the pool can launch is not known: " + why})
	}
	return unknown
}

// classNamesOfAWS returns the classes that AWS pools, and claims without a pool, name, in their order.
func (o *objects) classNamesOfAWS() []string {
	var list []string
	for _, p := range o.pricedPools() {
		if ref := classOf(p); ref.Group == awsv1.Group && ref.Kind == awsv1.Kind && !slices.Contains(list, ref.Name) {
			list = append(list, ref.Name)
		}
	}
	return list
}

// observeMemory passes the actual memory of nodes to the showcase, as the controller learns it.
func (o *Manifests) observeMemory(showcase *aws.OfflineCatalog) {
	for _, m := range o.machinesOf() {
		claim, node := m.Claim(), m.Node()
		if claim != nil && node != nil && node.Labels[karpv1.LabelRegistered] == "true" {
			showcase.Observe(node.Labels[corev1.LabelInstanceTypeStable], claim.Status.ImageID, node.Status.Capacity.Memory().Value())
		}
	}
	if err := showcase.Restore(o.memory); err != nil {
		o.assume(OneLine(err))
	}
}

// stockOf returns the offerings of one class.
func (o *Manifests) stockOf(showcase *aws.OfflineCatalog, name string, live bool) capture.PriceListEntry {
	stock := capture.PriceListEntry{Class: name}
	found, known := o.classesOfAWS[name]
	var err error
	var assumed string
	unlaunchable := aws.ExamineClass(found.object)
	if found.object != nil && !found.live && len(found.object.Spec.Kubelet.Expressions()) > 0 {
		o.assume(fmt.Sprintf("%s %s has expressions in spec.kubelet: the feature gate NodeClassCEL is taken to be on", awsv1.Kind, name))
	}
	if known && found.object.Spec.PlacementGroupSelector != nil {
		o.assume(fmt.Sprintf("%s %q: spec.placementGroupSelector: only AWS knows the placement group; it is taken as one with 7 "+
			"partitions, for all types and zones", awsv1.Kind, name))
	}
	switch {
	case found.wrong != nil:
		err = fmt.Errorf("%s %s: %w", awsv1.Kind, name, found.wrong)
	case unlaunchable != "":
		err = fmt.Errorf("%s %q is not ready: %s", awsv1.Kind, name, unlaunchable)
	case !known && live:
		err = fmt.Errorf("%s %q does not exist", awsv1.Kind, name)
	case !known:
		family := awsv1.FamilyAL2023
		stock.Types, assumed, err = showcase.Assumed(&awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: awsv1.EC2NodeClassSpec{AMIFamily: &family}}, o.zonesNamed())
		o.lack(awsv1.Kind, name, "taken as one of AL2023 with "+assumed)
	case found.live:
		stock.Types, err = showcase.Catalog(found.object)
	default:
		stock.Types, assumed, err = showcase.Assumed(found.object, o.zonesNamed())
		if assumed != "" {
			o.assume(fmt.Sprintf("%s %s has no status, which the controller would fill in: taken to have %s", awsv1.Kind, name, assumed))
		}
	}
	if err != nil {
		return capture.PriceListEntry{Class: name, Reason: OneLine(err)}
	}
	return stock
}

// assume records an assumption of the answer.
func (o *remarks) assume(text string) { o.assumed = append(o.assumed, text) }

// classOfAWS is an EC2NodeClass, and the error with which the API server would reject it.
type classOfAWS struct {
	sourced[*awsv1.EC2NodeClass]
	wrong error
}

// takeClass adds a class. A class of a file replaces the cluster's class of that name, and later gets its status
// (resolveClass).
func (o *objects) takeClass(origin string, class *awsv1.EC2NodeClass, live bool) {
	o.classesOfAWS[class.Name] = classOfAWS{sourced: sourced[*awsv1.EC2NodeClass]{class, origin, live}}
}

// resolveClass gives a class of a file the status of the cluster's class of that name.
func (o *objects) resolveClass(class *awsv1.EC2NodeClass) {
	if given, known := o.classesOfAWS[class.Name]; known && !given.live && len(given.object.Status.Subnets) == 0 {
		given.object.Status = class.Status
	}
}

// ofAWS reports whether any pool, or a claim without a pool, belongs to AWS.
func (o *objects) ofAWS() bool {
	return slices.ContainsFunc(o.pricedPools(), func(p *karpv1.NodePool) bool {
		return classOf(p).Group == awsv1.Group
	})
}

// showcaseOf returns the showcase of the cluster's region. It reuses the previous one if possible.
func (l *Cluster) showcaseOf(ctx context.Context, o *Manifests) (*aws.OfflineCatalog, error) {
	opts := aws.OfflineOptions{Region: o.regionOfAWS(), MemoryOverheadPercent: l.MemoryOverhead, ReservedENIs: l.ReservedENIs, IPv6: o.ipv6}
	if l.aws.showcase == nil || l.aws.opts != opts {
		l.aws = awsPrices{showcase: aws.NewOfflineCatalog(opts), opts: opts}
	}
	if l.CloudProvider != "aws" || time.Since(l.aws.asked) < refreshEvery {
		return l.aws.showcase, nil
	}
	cfg, err := aws.ConfigIn(ctx, "karpenter.sh-"+l.Version, opts.Region)
	if err == nil {
		l.aws.clients = aws.ClientsOf(cfg)
		err = l.aws.showcase.Refresh(ctx, l.aws.clients)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; without --cloud-provider=aws types and prices are those built in", err)
	}
	l.aws.asked = time.Now()
	return l.aws.showcase, nil
}

// byTenancy returns the offerings of a class, and individually those of its pools that can use its capacity reservations
// of dedicated tenancy, if it has any.
func byTenancy(pools []sourced[*karpv1.NodePool], stock capture.PriceListEntry) []capture.PriceListEntry {
	shared := stock
	shared.Types = aws.ForTenancyOf(&karpv1.NodePool{}, stock.Types)
	list := []capture.PriceListEntry{shared}
	for _, p := range pools {
		if ref := classOf(p.object); ref.Group != awsv1.Group || ref.Name != stock.Class {
			continue
		}
		if types := aws.ForTenancyOf(p.object, stock.Types); reserved(types) > reserved(shared.Types) {
			list = append(list, capture.PriceListEntry{Pools: []string{p.object.Name}, Types: types})
		}
	}
	return list
}

// reserved counts the reserved offerings.
func reserved(types []cloud.InstanceType) (n int) {
	for i := range types {
		for j := range types[i].Offerings {
			if types[i].Offerings[j].CapacityType == karpv1.CapacityTypeReserved {
				n++
			}
		}
	}
	return n
}

// countReservations reads the room in the capacity reservations that classes select, with --cloud-provider=aws. The
// status of a class does not contain it. A class of a file gets those that AWS finds. What remains unknown is recorded.
func (l *Cluster) countReservations(ctx context.Context, o *Manifests, showcase *aws.OfflineCatalog) {
	for _, name := range o.classNamesOfAWS() {
		found := o.classesOfAWS[name]
		if found.object == nil || len(found.object.Spec.CapacityReservationSelectorTerms) == 0 {
			continue
		}
		why := "--cloud-provider=aws reads it"
		if l.CloudProvider == "aws" {
			list, err := showcase.CountReservations(ctx, l.aws.clients, found.object)
			if err == nil {
				if !found.live {
					found.object.Status.CapacityReservations = list
				}
				continue
			}
			why = OneLine(err)
		}
		o.reserved = append(o.reserved, unknownRoom(found, showcase.Uncounted(found.object), why)...)
	}
}

// unknownRoom returns the assumption about the reservations of a class of which the room is not known.
func unknownRoom(class classOfAWS, ids []string, why string) []string {
	name := awsv1.Kind + " " + class.object.Name
	switch {
	case len(ids) > 0:
		return []string{fmt.Sprintf("%s: the room in %s is not known: taken to be used up; %s", name, strings.Join(ids, ", "), why)}
	case !class.live && len(class.object.Status.CapacityReservations) == 0:
		return []string{fmt.Sprintf("%s: the capacity reservations that it selects are not known: taken to be none; %s", name, why)}
	}
	return nil
}

// regionOfAWS returns the region of the cluster, from the first of these sources: the subnets of its classes, its
// nodes, the requirements of its pools, the environment; else us-east-1.
func (o *objects) regionOfAWS() string {
	for _, name := range slices.Sorted(maps.Keys(o.classesOfAWS)) {
		for _, subnet := range o.classesOfAWS[name].object.Status.Subnets {
			if region := aws.RegionOf(subnet.Zone); region != "" {
				return region
			}
		}
	}
	for _, n := range o.nodes {
		if region := cmp.Or(n.object.Labels[corev1.LabelTopologyRegion], aws.RegionOf(n.object.Labels[corev1.LabelTopologyZone])); aws.RegionOf(region) != "" {
			return region
		}
	}
	for _, zone := range o.zonesNamed() {
		if region := aws.RegionOf(zone); region != "" {
			return region
		}
	}
	return cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
}

// zonesNamed returns the zones and regions of nodes and pool requirements, sorted, those of the first pool first.
func (o *objects) zonesNamed() []string {
	var named []string
	for _, p := range o.pools {
		for _, r := range p.object.Spec.Template.Spec.Requirements {
			if (r.Key == corev1.LabelTopologyZone || r.Key == corev1.LabelTopologyRegion) && string(r.Operator) == string(corev1.NodeSelectorOpIn) {
				named = append(named, r.Values...)
			}
		}
	}
	for _, n := range o.nodes {
		if zone := n.object.Labels[corev1.LabelTopologyZone]; zone != "" {
			named = append(named, zone)
		}
	}
	return named
}

// readAWS reads the objects of a cluster that matter only to AWS pools: their classes, and, if permitted, the memory
// of nodes that the controller has observed.
func (l *Cluster) readAWS(ctx context.Context, c client.Client, o *Manifests) error {
	if err := l.list(ctx, c, o, &awsv1.EC2NodeClassList{}); err != nil {
		return err
	}
	stored := &corev1.ConfigMapList{}
	if err := c.List(ctx, stored, client.MatchingFields{"metadata.name": aws.MemoryConfigMap}, client.Limit(PageSize)); err != nil {
		o.assume("memory seen on nodes: " + OneLine(err) + "; types of which no node runs have the estimate")
		return nil
	}
	for i := range stored.Items {
		if stored.Items[i].Name == aws.MemoryConfigMap {
			o.memory = stored.Items[i].Data
		}
	}
	return nil
}
