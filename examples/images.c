/* Certifies an image model, and attacks it: what is true lies between the two.  Usage: images RECIPE FOLDER
 *     cc images.c -o images $(pkg-config --cflags --libs taut) && ./images recipes/mlp-shapes-small.ini runs/images */
#include <stdio.h>
#include <stdlib.h>
#include <taut.h>

static void must(taut_status s)
{
    if (s == TAUT_OK) return;
    fprintf(stderr, "%s\n", taut_last_error());
    exit(1);
}

int main(int argc, char **argv)
{
    const char *const shorter[] = { "train.steps=60" };
    taut_result r;
    taut_cert *cert;
    taut_cert_facts proved;
    taut_prediction p;
    taut_attacked *attacked;
    taut_attack_facts found;
    taut_attack_radius at;
    char text[32];
    if (argc != 3) return fprintf(stderr, "usage: %s RECIPE FOLDER\n", argv[0]), 1;
    must(taut_train_recipe(
        &r, argv[1], argv[2],
        &(taut_train_options){ .size = sizeof(taut_train_options), .overrides = shorter, .count = 1, .overwrite = 1 }));

    /* Images with pixels in [0, 1], moved by up to 0.5 in l2. */
    must(taut_certify_file(
        &cert, argv[2],
        &(taut_certify_options){
            .size = sizeof(taut_certify_options), .metric = TAUT_FLAT, .room = 0.5, .examples = 10 }));
    must(taut_cert_look(cert, &proved));
    printf("proved: %s-Lipschitz from pixels to logits\n", taut_number_up(text, proved.lip)); /* rounded up */
    for (int64_t i = 0; i < 3; i++) {
        must(taut_cert_example(cert, i, &p));
        printf("  an image of class %d is called %d, and still is when it moves by less than %s\n", p.label,
               p.predicted, taut_number_down(text, p.radius)); /* rounded down */
    }
    must(taut_attack_file(
        &attacked, argv[2],
        &(taut_attack_options){
            .size = sizeof(taut_attack_options), .attacks = "pgd", .norm = "L2", .eps = "0.1,0.5", .examples = 20 }));
    must(taut_attacked_look(attacked, &found));
    for (int i = 0; i < found.radii; i++) {
        must(taut_attacked_at(attacked, i, &at));
        printf("moved by up to %g: of %lld right answers %lld are proved to stand, %lld stood\n", at.eps,
               (long long)found.right, (long long)at.certified, (long long)at.standing);
    }
    taut_attacked_free(attacked);
    taut_cert_free(cert);
    return found.contradictions ? 2 : 0; /* an attack that beats a proof: one of the two is wrong */
}
