package awssim

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SavingsPlan is a commitment of the account in USD per hour: a discount on the bill, not a machine.
// https://docs.aws.amazon.com/savingsplans/latest/APIReference/API_SavingsPlan.html
type SavingsPlan struct {
	ID         string  `json:"id"`
	Type       string  `json:"type"`       // Compute (when empty), EC2Instance, SageMaker or Database
	Family     string  `json:"family"`     // of an EC2Instance plan
	Region     string  `json:"region"`     // of an EC2Instance plan: that of the cloud when empty
	Commitment float64 `json:"commitment"` // USD per hour
	Payment    string  `json:"payment"`    // No Upfront when empty
	Years      int     `json:"years"`      // the term: 1 (when 0) or 3
	Currency   string  `json:"currency"`   // USD when empty
	// State is active when empty. It is retired after the end, and a queued plan is active from its start.
	State string    `json:"state"`
	Start time.Time `json:"start"` // now when zero
	End   time.Time `json:"end"`   // the term after the start when zero
	// Rates are those of Linux with shared tenancy in the region, in USD per hour by instance type. The plan has no others
	// for EC2; the model generates them when it is empty.
	Rates map[string]float64 `json:"rates"`
	Tags  map[string]string  `json:"tags"`

	offering string
}

// The types of plans that cover EC2, and the states of plans.
// https://docs.aws.amazon.com/savingsplans/latest/APIReference/API_DescribeSavingsPlans.html
const (
	planCompute  = "Compute"
	planInstance = "EC2Instance"
	stateQueued  = "queued"
)

var planStates = []string{"payment-pending", "payment-failed", stateActive, stateRetired, stateQueued, "queued-deleted", "pending-return",
	"returned"}

const planYear = 365 * 24 * time.Hour

// AddSavingsPlan buys a Savings Plan, and returns its ID.
func (c *Cloud) AddSavingsPlan(p SavingsPlan) string {
	c.locked(func(now time.Time) {
		p.ID, p.offering = c.uuid(), c.uuid()
		defaultTo(&p.Type, planCompute)
		if p.Type == planInstance {
			defaultTo(&p.Region, c.opts.Region)
		}
		defaultTo(&p.Payment, "No Upfront")
		defaultTo(&p.Years, 1)
		defaultTo(&p.Currency, "USD")
		defaultTo(&p.State, stateActive)
		if p.Start.IsZero() {
			p.Start = now
		}
		if p.End.IsZero() {
			p.End = p.Start.Add(time.Duration(p.Years) * planYear)
		}
		c.savingsPlans = append(c.savingsPlans, &p)
	})
	return p.ID
}

// state is the plan's state at a time.
func (p *SavingsPlan) state(now time.Time) string {
	switch {
	case p.State == stateQueued && p.Start.After(now):
		return stateQueued
	case p.State != stateActive && p.State != stateQueued:
		return p.State
	case !p.End.After(now):
		return stateRetired
	}
	return stateActive
}

// planFilters have the member of the answer that a filter compares.
// https://docs.aws.amazon.com/savingsplans/latest/APIReference/API_SavingsPlanFilter.html
var planFilters = filterTable{"region": "region", "ec2-instance-family": "ec2InstanceFamily", "instance-family": "ec2InstanceFamily",
	"commitment": "commitment", "upfront": "upfrontPaymentAmount", "term": "termDurationInSeconds", "savings-plan-type": "savingsPlanType",
	"payment-option": "paymentOption", "start": "start", "end": "end"}

// rateFilters have the member, or the property, that a filter compares.
// https://docs.aws.amazon.com/savingsplans/latest/APIReference/API_SavingsPlanRateFilter.html
var rateFilters = filterTable{"region": "region", "instanceType": "instanceType", "productDescription": "productDescription",
	"tenancy": "tenancy", "productType": "productType", "serviceCode": "serviceCode", "usageType": "usageType", "operation": "operation"}

func savingsPlansMethods() map[string]method {
	return map[string]method{
		"DescribeSavingsPlans": {run: describeSavingsPlans, filters: planFilters,
			params: []string{"savingsPlanArns", "savingsPlanIds", "nextToken", "maxResults", "states", "filters"}},
		"DescribeSavingsPlanRates": {run: describeSavingsPlanRates, filters: rateFilters,
			params: []string{"savingsPlanId", "filters", "nextToken", "maxResults"}},
	}
}

// planRequest has the members of both requests.
type planRequest struct {
	SavingsPlanArns []string         `json:"savingsPlanArns"`
	SavingsPlanIDs  []string         `json:"savingsPlanIds"`
	SavingsPlanID   string           `json:"savingsPlanId"`
	States          []string         `json:"states"`
	Filters         []planFilterPart `json:"filters"`
	MaxResults      *int             `json:"maxResults"`
	NextToken       string           `json:"nextToken"`
}

type planFilterPart struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

func invalidPlan(format string, args ...any) error {
	return &apiError{"ValidationException", fmt.Sprintf(format, args...), http.StatusBadRequest}
}

// plansAsked decodes and checks a request.
func (c *Cloud) plansAsked(r *request) (*planRequest, error) {
	in := &planRequest{}
	if err := r.in(in); err != nil {
		return nil, err
	}
	if c.strike(r, FaultIgnoreFilters) != nil {
		in.States, in.Filters = nil, nil
	}
	if n := in.MaxResults; n != nil && (*n < 1 || *n > planPage) {
		return nil, invalidPlan("maxResults: %d is not between 1 and %d", *n, planPage)
	}
	if len(in.SavingsPlanArns) > 100 {
		return nil, invalidPlan("savingsPlanArns: %d members, more than 100", len(in.SavingsPlanArns))
	}
	for _, arn := range in.SavingsPlanArns {
		if !planARN.MatchString(arn) {
			return nil, invalidPlan("savingsPlanArns: %q does not match %s", arn, planARN)
		}
	}
	for _, state := range in.States {
		if !slices.Contains(planStates, state) {
			return nil, invalidPlan("states: %q is not one of %v", state, planStates)
		}
	}
	for _, f := range in.Filters {
		if r.filters[f.Name] == "" || len(f.Values) == 0 {
			return nil, invalidPlan("filters: %q with %d values: the name must be one of %v", f.Name, len(f.Values), sortedKeys(r.filters))
		}
	}
	return in, nil
}

var planARN = regexp.MustCompile(
	`^arn:aws:[a-z]+:([a-z]{2}-[a-z]+-\d|):\d{12}:savingsplan/[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// matches reports whether all filters match. of returns the value that is at a filter's place.
func (in *planRequest) matches(table filterTable, of func(place string) string) bool {
	return !slices.ContainsFunc(in.Filters, func(f planFilterPart) bool { return !slices.Contains(f.Values, of(table[f.Name])) })
}

// planPage is the largest page of both calls, and the one without maxResults, of which AWS does not document the size.
const planPage = 1000

// pageOfPlans returns one page of a list, with the token of the next one.
func pageOfPlans(c *Cloud, in *planRequest, member string, items []map[string]any) (map[string]any, error) {
	size, start := planPage, 0
	if in.MaxResults != nil {
		size = *in.MaxResults
	}
	if c.opts.PageSize > 0 {
		size = min(size, c.opts.PageSize)
	}
	if in.NextToken != "" {
		text, err := base64.StdEncoding.DecodeString(in.NextToken)
		number, ok := strings.CutPrefix(string(text), "page:")
		if start, err = strconv.Atoi(number); !ok || err != nil || start < 0 || start > len(items) {
			return nil, invalidPlan("nextToken: %q is not valid", in.NextToken)
		}
	}
	end := min(start+size, len(items))
	out := map[string]any{member: append([]map[string]any{}, items[start:end]...)}
	if end < len(items) {
		out["nextToken"] = base64.StdEncoding.EncodeToString([]byte("page:" + strconv.Itoa(end)))
	}
	return out, nil
}

// describeSavingsPlans implements savingsplans:DescribeSavingsPlans. An ID that does not exist is no error.
// https://docs.aws.amazon.com/savingsplans/latest/APIReference/API_DescribeSavingsPlans.html
func describeSavingsPlans(c *Cloud, r *request, now time.Time) (any, error) {
	in, err := c.plansAsked(r)
	if err != nil {
		return nil, err
	}
	var found []map[string]any
	for _, p := range c.savingsPlans {
		item := c.planItem(p, now)
		chosen := len(in.SavingsPlanArns)+len(in.SavingsPlanIDs) == 0 || slices.Contains(in.SavingsPlanIDs, p.ID) ||
			slices.Contains(in.SavingsPlanArns, item["savingsPlanArn"].(string))
		if chosen && (len(in.States) == 0 || slices.Contains(in.States, p.state(now))) &&
			in.matches(r.filters, func(member string) string { return fmt.Sprint(cmp.Or(item[member], any(""))) }) {
			found = append(found, item)
		}
	}
	return pageOfPlans(c, in, "savingsPlans", found)
}

// planItem is a plan in the answer. Half of the price is paid at the start with partial upfront payment.
func (c *Cloud) planItem(p *SavingsPlan, now time.Time) map[string]any {
	hours := (time.Duration(p.Years) * planYear).Hours()
	upfront := map[string]float64{"All Upfront": 1, "Partial Upfront": 0.5}[p.Payment]
	amount := func(usd float64) string { return strconv.FormatFloat(usd, 'f', 8, 64) }
	times := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
	item := map[string]any{
		"offeringId": p.offering, "savingsPlanId": p.ID, "savingsPlanArn": "arn:aws:savingsplans::" + c.opts.AccountID + ":savingsplan/" + p.ID,
		"description": fmt.Sprintf("%d year %s %s Savings Plan", p.Years, p.Payment, p.Type), "start": times(p.Start), "end": times(p.End),
		"state": p.state(now), "savingsPlanType": p.Type, "paymentOption": p.Payment, "productTypes": planProducts[p.Type],
		"currency": p.Currency, "commitment": amount(p.Commitment), "upfrontPaymentAmount": amount(p.Commitment * hours * upfront),
		"recurringPaymentAmount": amount(p.Commitment * (1 - upfront)), "termDurationInSeconds": int64(hours * 3600), "tags": p.Tags,
	}
	if p.Tags == nil {
		item["tags"] = map[string]string{}
	}
	if p.Type == planInstance {
		item["region"], item["ec2InstanceFamily"] = p.Region, p.Family
	}
	return item
}

var planProducts = map[string][]string{planCompute: {"EC2", "Fargate", "Lambda"}, planInstance: {"EC2"}, "SageMaker": {"SageMaker"},
	"Database": {"RDS"}}

// describeSavingsPlanRates implements savingsplans:DescribeSavingsPlanRates.
// https://docs.aws.amazon.com/savingsplans/latest/APIReference/API_DescribeSavingsPlanRates.html
func describeSavingsPlanRates(c *Cloud, r *request, _ time.Time) (any, error) {
	in, err := c.plansAsked(r)
	if err != nil {
		return nil, err
	}
	if in.SavingsPlanID == "" {
		return nil, invalidPlan("savingsPlanId: is required")
	}
	at := slices.IndexFunc(c.savingsPlans, func(p *SavingsPlan) bool { return p.ID == in.SavingsPlanID })
	if at < 0 {
		return nil, &apiError{"ResourceNotFoundException", "No Savings Plan " + in.SavingsPlanID, http.StatusNotFound}
	}
	var found []map[string]any
	for _, rate := range c.ratesOf(c.savingsPlans[at]) {
		if in.matches(r.filters, rate.at) {
			found = append(found, rate.item())
		}
	}
	out, err := pageOfPlans(c, in, "searchResults", found)
	if err == nil {
		out["savingsPlanId"] = in.SavingsPlanID
	}
	return out, err
}

// planRate is a rate: the members, and the properties, of which an empty one is left out.
type planRate struct {
	usd                 float64
	members, properties map[string]string
}

func (r *planRate) at(place string) string { return r.members[place] + r.properties[place] }

func (r *planRate) item() map[string]any {
	item := map[string]any{"rate": strconv.FormatFloat(r.usd, 'f', -1, 64), "properties": []map[string]string{}}
	for name, value := range r.members {
		item[name] = value
	}
	for _, name := range sortedKeys(r.properties) {
		item["properties"] = append(item["properties"].([]map[string]string), map[string]string{"name": name, "value": r.properties[name]})
	}
	return item
}

// ratesOf returns the rates of a plan. A Compute plan has those of all regions, of which the model has the cloud's and
// another one. The caller holds the lock.
func (c *Cloud) ratesOf(p *SavingsPlan) []planRate {
	var rates []planRate
	add := func(usd float64, product, service, unit, usage, operation string, properties map[string]string) {
		rates = append(rates, planRate{usd, map[string]string{"currency": p.Currency, "unit": unit, "productType": product,
			"serviceCode": service, "usageType": usageRegion(properties["region"]) + usage, "operation": operation}, properties})
	}
	operations := map[string]string{linux: "RunInstances", "Windows": "RunInstances:0002"}
	ofType := func(region, name, system, tenancy, usage string, usd float64) {
		family, _, _ := strings.Cut(name, ".")
		add(usd, "EC2", "AmazonEC2", "Hrs", usage+":"+name, operations[system], map[string]string{"region": region, "instanceType": name,
			"instanceFamily": family, "productDescription": system, "tenancy": tenancy})
	}
	regions := map[string][]string{planCompute: {c.opts.Region, elsewhere(c.opts.Region)}, planInstance: {p.Region}}[p.Type]
	for _, region := range regions {
		for _, name := range slices.Sorted(maps.Keys(p.Rates)) {
			ofType(region, name, linux, "shared", "BoxUsage", p.Rates[name])
		}
		for _, name := range c.names {
			t := c.types[name]
			if len(p.Rates) > 0 || c.listedPrice(t) == 0 || p.Type == planInstance && !strings.HasPrefix(name, p.Family+".") {
				continue
			}
			for _, system := range []string{linux, "Windows"} {
				if system != linux && !slices.Contains(t.Arch, "x86_64") {
					continue
				}
				usd := c.planRate(p, t) + t.license(system)
				ofType(region, name, system, "shared", "BoxUsage", usd)
				ofType(region, name, system, "shared", "UnusedBox", usd) // of capacity reservations
				ofType(region, name, system, "dedicated", "DedicatedUsage", math.Round(usd*1.06e6)/1e6)
			}
		}
		if p.Type == planCompute {
			here := map[string]string{"region": region}
			add(0.03238, "Fargate", "AmazonECS", "Hrs", "Fargate-vCPU-Hours:perCPU", "", here)
			add(0.03238, "Fargate", "AmazonEKS", "Hrs", "Fargate-vCPU-Hours:perCPU", "", here)
			add(0.0000146667, "Lambda", "AWSLambda", "Lambda-GB-Second", "Lambda-GB-Second", "", here)
		}
	}
	return rates
}

// planRate returns the rate of Linux with shared tenancy: 27% to 60% off, more for a longer term, more paid upfront, and a
// narrower plan. The model generates it.
func (c *Cloud) planRate(p *SavingsPlan, t *machineType) float64 {
	family, _, _ := strings.Cut(t.Name, ".")
	off := 0.25 + 0.05*c.chance("savings plan", family)
	off += map[int]float64{3: 0.18}[p.Years] + map[string]float64{"Partial Upfront": 0.02, "All Upfront": 0.04}[p.Payment] +
		map[string]float64{planInstance: 0.08}[p.Type]
	return math.Round(c.onDemandPrice(t)*(1-off)*1e6) / 1e6
}

// elsewhere is another region of the account.
func elsewhere(region string) string {
	if region == "us-west-2" {
		return "us-east-2"
	}
	return "us-west-2"
}

// usageRegion is the prefix of usage types, as USW2- of us-west-2. Of some regions, AWS's own differs from this.
// https://docs.aws.amazon.com/cur/latest/userguide/billing-log-records.html
func usageRegion(region string) string {
	parts := strings.Split(region, "-")
	if region == "us-east-1" || len(parts) != 3 {
		return ""
	}
	return strings.ToUpper(parts[0]+parts[1][:1]+parts[2]) + "-"
}
