// kafka-go (segmentio): writers with every codec, a group of two readers that commit each message.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

const messages, partitions = 6, 3

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	brokers, topic := strings.Split(os.Args[1], ","), os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client := &kafka.Client{Addr: kafka.TCP(brokers...)}
	created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}},
	})
	check(err)
	check(created.Errors[topic])
	codecs := map[string]kafka.Compression{
		"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
	}
	var got atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { read(ctx, brokers, topic, &got) })
	}
	for name, codec := range codecs {
		write(ctx, brokers, topic, name, codec)
	}
	for got.Load() < int64(messages*len(codecs)) {
		check(ctx.Err())
		time.Sleep(50 * time.Millisecond)
	}
	offsets, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(0), kafka.FirstOffsetOf(1)}},
	})
	check(err)
	check(offsets.Topics[topic][0].Error)
	cancel()
	all.Wait()
}

func write(ctx context.Context, brokers []string, topic, name string, codec kafka.Compression) {
	writer := &kafka.Writer{
		Addr: kafka.TCP(brokers...), Topic: topic, Compression: codec, RequiredAcks: kafka.RequireAll,
		BatchSize: 3, BatchTimeout: 20 * time.Millisecond, Balancer: &kafka.RoundRobin{},
	}
	for number := range messages {
		check(writer.WriteMessages(ctx, kafka.Message{
			Key: fmt.Appendf(nil, "key-%d", number), Value: fmt.Appendf(nil, "%s %d", name, number),
			Headers: []kafka.Header{{Key: "codec", Value: []byte(name)}},
		}))
	}
	check(writer.Close())
}

func read(ctx context.Context, brokers []string, topic string, got *atomic.Int64) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: brokers, Topic: topic, GroupID: topic + ".group", StartOffset: kafka.FirstOffset,
		MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 200 * time.Millisecond,
	})
	for ctx.Err() == nil {
		message, err := reader.FetchMessage(ctx)
		if err != nil {
			break
		}
		got.Add(1)
		check(reader.CommitMessages(context.Background(), message))
	}
	check(reader.Close())
}
