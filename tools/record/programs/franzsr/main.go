// franz-go's sr: Avro, JSON and Protobuf by Confluent's prefix, with the schemas in a registry.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protowire"
)

const order = `{"type":"record","name":"Order","namespace":"shop","fields":[
 {"name":"id","type":"long"},{"name":"customer","type":["null","string"]},
 {"name":"items","type":{"type":"array","items":"string"}},
 {"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}}]}`

const orders = `syntax = "proto3"; package shop;
message Order { int32 id = 1; repeated string items = 2; message Note { string text = 1; } }
message Refund { Order.Note note = 1; double amount = 2; }`

type Order struct {
	ID       int64     `avro:"id" json:"id"`
	Customer *string   `avro:"customer" json:"customer"`
	Items    []string  `avro:"items" json:"items"`
	At       time.Time `avro:"at" json:"at"`
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	topic := os.Args[2]
	registry, err := sr.NewClient(sr.URLs(os.Args[3]))
	check(err)
	create := func(name, text string, kind sr.SchemaType) int {
		made, err := registry.CreateSchema(ctx, topic+"."+name+"-value", sr.Schema{Schema: text, Type: kind})
		check(err)
		return made.ID
	}
	ann := "Ann"
	at := time.UnixMilli(1700000000003).UTC()
	values := []Order{{1, &ann, []string{"lamp"}, at}, {-(1 << 40), nil, []string{"chair", "tisch"}, at}}
	parsed := avro.MustParse(order)

	var serde sr.Serde
	serde.Register(create("avro", order, sr.TypeAvro), Order{},
		sr.EncodeFn(func(value any) ([]byte, error) { return avro.Marshal(parsed, value) }))
	var jsonSerde sr.Serde
	jsonSerde.Register(create("json", `{"title": "Order", "type": "object"}`, sr.TypeJSON), Order{},
		sr.EncodeFn(json.Marshal))

	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(os.Args[1], ",")...), kgo.ClientID("franz-go-sr"),
		kgo.AllowAutoTopicCreation(), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	check(err)
	defer client.Close()
	send := func(name string, data []byte, err error) {
		check(err)
		check(client.ProduceSync(ctx, &kgo.Record{Topic: topic + "." + name, Value: data}).FirstErr())
	}
	for _, value := range values {
		data, err := serde.Encode(value)
		send("avro", data, err)
		data, err = jsonSerde.Encode(value)
		send("json", data, err)
	}
	// The messages are written field by field: a program without generated code.
	id := create("protobuf", orders, sr.TypeProtobuf)
	var header sr.ConfluentHeader
	note := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "broken")
	first := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 5)
	first = protowire.AppendString(protowire.AppendTag(first, 2, protowire.BytesType), "lamp")
	refund := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), note)
	refund = protowire.AppendFixed64(protowire.AppendTag(refund, 2, protowire.Fixed64Type), 0x4029000000000000)
	for _, each := range []struct {
		index   []int
		content []byte
	}{{[]int{0}, first}, {[]int{0, 0}, note}, {[]int{1}, refund}} {
		data, err := header.AppendEncode(nil, id, each.index)
		send("protobuf", append(data, each.content...), err)
	}
	client.AddConsumeTopics(topic+".avro", topic+".json", topic+".protobuf")
	for got := 0; got < 7; {
		fetched := client.PollFetches(ctx)
		check(fetched.Err())
		got += fetched.NumRecords()
	}
}
