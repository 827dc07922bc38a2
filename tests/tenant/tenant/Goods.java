package tenant;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.text.MessageFormat;
import java.text.NumberFormat;
import java.text.SimpleDateFormat;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.BitSet;
import java.util.Collections;
import java.util.Date;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.Scanner;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.UUID;
import java.util.WeakHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/** Values: what a single thread makes of them. */
final class Goods {
    private Goods() {}

    static Object collections(long seed) {
        Random random = new Random(seed);
        Map<Integer, String> hashed = new HashMap<>();
        Map<Integer, String> linked = new LinkedHashMap<>(16, 0.75f, true);
        TreeMap<String, Integer> sorted = new TreeMap<>(Collections.reverseOrder());
        ArrayDeque<Integer> deque = new ArrayDeque<>();
        LinkedList<Integer> list = new LinkedList<>();
        PriorityQueue<Integer> queue = new PriorityQueue<>();
        Map<Object, Integer> weak = new WeakHashMap<>();
        Map<Object, Integer> identical = new IdentityHashMap<>();
        Map<Stall, Integer> counted = new EnumMap<>(Stall.class);
        BitSet bits = new BitSet();
        for (int i = 0; i < 300; i++) {
            int value = random.nextInt(500);
            String text = "v" + value;
            hashed.merge(value, text, String::concat);
            linked.put(value % 50, text);
            sorted.merge(text, 1, Integer::sum);
            deque.addLast(value);
            if (i % 3 == 0) {
                deque.pollFirst();
            }
            list.add(list.size() / 2, value);
            queue.add(value);
            weak.put(Stall.values()[value % 16], i);
            identical.put(Stall.values()[value % 16], i);
            counted.merge(Stall.values()[value % 16], 1, Integer::sum);
            bits.set(value);
        }
        hashed.keySet().removeIf(key -> key % 7 == 0);
        List<Integer> drained = new ArrayList<>();
        while (!queue.isEmpty()) {
            drained.add(queue.poll());
        }
        return Arrays.asList(
                hashed.hashCode(),
                linked.toString().hashCode(),
                sorted.headMap("v3").toString().hashCode(),
                deque.stream().mapToInt(i -> i).sum(),
                list.hashCode(),
                drained.hashCode(),
                weak.size(),
                identical.size(),
                counted.values(),
                bits.cardinality());
    }

    static Object streams(long seed) {
        Map<Integer, Long> grouped =
                IntStream.range(0, 400)
                        .mapToObj(i -> "item" + (i * seed + i) % 61)
                        .distinct()
                        .sorted()
                        .collect(Collectors.groupingBy(String::length, Collectors.counting()));
        int parallel =
                IntStream.range(0, 4_000)
                        .parallel()
                        .mapToObj(i -> Integer.toString(i, 36) + seed)
                        .mapToInt(String::length)
                        .sum();
        String joined =
                Stream.iterate(seed + 1, x -> x * 31 % 1_009)
                        .limit(40)
                        .flatMap(x -> Stream.of(x, x + 1))
                        .map(String::valueOf)
                        .collect(Collectors.joining(",", "[", "]"));
        return grouped + " " + parallel + " " + joined;
    }

    static Object text(long seed) {
        Pattern pattern = Pattern.compile("(?<word>[a-z]+)-(\\d{1,3})(?=[;,])|(x+)(?:y|z)\\3?");
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 60; i++) {
            text.append("word-").append((seed + i) * 37 % 1_000).append(i % 2 == 0 ? ';' : ',');
            text.append("xx".repeat(i % 3)).append('y');
        }
        Matcher matcher = pattern.matcher(text);
        int sum = 0;
        while (matcher.find()) {
            sum += matcher.group(2) == null ? matcher.group().length() : matcher.group(2).hashCode();
        }
        String replaced = pattern.matcher(text).replaceAll(match -> "<" + match.group().length() + ">");
        String[] parts = replaced.split("[<>]+");
        String turned = new StringBuilder(replaced).reverse().insert(3, seed).toString();
        return sum + " " + parts.length + " " + turned.hashCode() + " "
                + "Straße \u00e9\u4e2d".toUpperCase(Locale.ROOT) + text.toString().strip().lines().count();
    }

    static Object formats(long seed) {
        String formatted =
                String.format(Locale.GERMANY, "%,.3f|%08d|%-12s|%x|%tF", seed * 1.37e5, seed,
                        "left" + seed, seed * 997, new Date(seed * 86_400_000L).toInstant().atZone(ZoneId.of("UTC")));
        String message =
                new MessageFormat("{0,number,#.##} of {1} {2,choice,0#none|1#one|1<many}", Locale.US)
                        .format(new Object[] {seed * 0.333, "total", seed});
        NumberFormat money = NumberFormat.getCurrencyInstance(Locale.US);
        SimpleDateFormat date = new SimpleDateFormat("yyyy-MM-dd EEEE", Locale.FRANCE);
        date.setTimeZone(TimeZone.getTimeZone("Asia/Tokyo"));
        return formatted + message + money.format(seed * 12.5) + date.format(new Date(seed * 1_000_000_007L));
    }

    static Object numbers(long seed) {
        BigInteger power = BigInteger.valueOf(seed + 2).pow(180).modPow(
                BigInteger.valueOf(65_537), BigInteger.ONE.shiftLeft(521).subtract(BigInteger.ONE));
        BigDecimal quotient = new BigDecimal(power).divide(new BigDecimal("7." + seed), new MathContext(60));
        return power.toString(36) + " " + quotient.toPlainString() + " "
                + Double.toString(Math.sqrt(seed)) + " " + Double.parseDouble("1.5e" + seed % 30);
    }

    static Object times(long seed) {
        ZonedDateTime time =
                Instant.ofEpochSecond(1_600_000_000L + seed * 10_000_019)
                        .atZone(ZoneId.of(seed % 2 == 0 ? "Europe/Berlin" : "America/New_York"));
        String text = DateTimeFormatter.ofPattern("EEEE d MMMM uuuu HH:mm:ss VV xxx", Locale.UK).format(time);
        ZonedDateTime read =
                ZonedDateTime.parse(time.format(DateTimeFormatter.ISO_ZONED_DATE_TIME));
        return text + " " + Duration.between(time, read.plusMonths(5)).toHours();
    }

    static Object codes(long seed) throws IOException, GeneralSecurityException {
        byte[] plain = ("text of " + seed + " ").repeat(200).getBytes(StandardCharsets.UTF_8);
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(plain);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (GZIPOutputStream zip = new GZIPOutputStream(bytes)) {
            zip.write(plain);
        }
        byte[] back;
        try (GZIPInputStream unzip =
                new GZIPInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            back = unzip.readAllBytes();
        }
        CRC32 sum = new CRC32();
        sum.update(back);
        Charset charset = Charset.forName(seed % 2 == 0 ? "windows-1252" : "UTF-16BE");
        ByteBuffer encoded = charset.encode("caf\u00e9 " + seed);
        return Base64.getEncoder().encodeToString(digest) + " " + sum.getValue() + " "
                + UUID.nameUUIDFromBytes(digest) + " " + charset.decode(encoded);
    }

    static Object files(long seed) throws IOException {
        Path file = Files.createTempFile(Path.of(""), "bazaar", ".txt");
        try {
            Files.write(file, Collections.nCopies(80, "line of " + seed));
            int words = 0;
            try (Scanner scanner = new Scanner(file, StandardCharsets.UTF_8)) {
                while (scanner.hasNext()) {
                    words += scanner.next().length();
                }
            }
            try (BufferedReader reader = Files.newBufferedReader(file)) {
                return words + " " + reader.lines().distinct().count();
            }
        } finally {
            Files.delete(file);
        }
    }
}
